// SPDX-License-Identifier: Apache-2.0
#include "common/json_writer.h"
#include "report/diagnosis.h"
#include "report/profile_text.h"
#include "report/suspects_text.h"
#include "report/track_text.h"

namespace tidemark::report {

std::string diagnosis_json(const Diagnosis& diagnosis) {
  JsonWriter json;
  json.begin_object().field("schema", 1);
  json.field("answer", diagnosis_answer(diagnosis));
  json.text_field("deciding", diagnosis.run.verdict ? deciding_text(diagnosis) : "");
  json.field("watched_s", diagnosis.watched_s);
  json.key("verdict").document(track_json(diagnosis.run));
  if (diagnosis.lines.run->empty()) {
    json.field("lines", nullptr);
  } else {
    json.key("lines").document(profile_json(diagnosis.lines));
  }
  if (has_looks(diagnosis.owners)) {
    json.key("owners").document(owners_json(diagnosis.owners));
  } else {
    json.field("owners", nullptr);
  }
  if (diagnosis.ledger.ledgers->empty()) {
    json.field("ledger", nullptr);
  } else {
    json.key("ledger").document(explain_json(diagnosis.ledger));
  }
  add_suspects(json, diagnosis.suspects);
  if (diagnosis.interventions.processes.empty()) {
    json.field("interventions", nullptr);
  } else {
    json.key("interventions").document(rule_out_json(diagnosis.interventions));
  }
  json.array("refused", diagnosis.refused, [&](const RefusedDepth& refused) {
    json.begin_object().field("what", refused.what).field("why", refused.why).end_object();
  });
  return json.end_object().take();
}

}  // namespace tidemark::report
