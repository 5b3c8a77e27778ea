// SPDX-License-Identifier: Apache-2.0
#include "common/json_writer.h"
#include "report/rule_out_text.h"

namespace tidemark::report {
namespace {

void add_process(JsonWriter& json, const ProcessKey& key, std::string_view program) {
  json.begin_object().field("pid", key.pid).field("start_ticks", key.start_ticks);
  json.text_field("program", program);
}

void add_intervention(JsonWriter& json, const InterventionRecord& record) {
  json.begin_object()
      .field("kind", intervention_kind_name(record.kind))
      .field("suspect", suspect_text(record.kind))
      .field("outcome", intervention_outcome_name(record.outcome))
      .field("t_s", record.t_s)
      .field("before_bytes", record.before_bytes)
      .field("after_bytes", record.after_bytes)
      .field("effect_bytes", record.effect_bytes)
      .field("noise_bytes", record.noise_bytes)
      .field("took_s", record.took_s)
      .field("waited_s", record.waited_s)
      .field("objects", record.objects)
      .field("gpu_bytes", record.gpu_bytes);
  json.text_field("problem", record.problem);
  json.end_object();
}

}  // namespace

std::string rule_out_json(const RuleOutReport& report) {
  JsonWriter json;
  json.begin_object().field("schema", 1).field("dry_run", false);
  json.text_field("command", report.command);
  json.array("processes", report.processes, [&](const RuleOutReport::Process& process) {
    add_process(json, process.key, process.program);
    json.field("footprint_bytes", process.footprint_bytes);
    json.array("interventions", process.interventions,
               [&](const InterventionRecord& record) { add_intervention(json, record); });
    json.array("conclusions", conclusions(process));
    json.end_object();
  });
  json.array("notes", report.notes);
  return json.end_object().take();
}

std::string plan_json(const RuleOutPlan& plan) {
  JsonWriter json;
  json.begin_object().field("schema", 1).field("dry_run", true);
  json.array("processes", plan.processes, [&](const RuleOutPlan::Process& process) {
    add_process(json, process.key, process.program);
    json.array("steps", process.steps, [&](const RuleOutPlan::Step& step) {
      json.begin_object()
          .field("kind", intervention_kind_name(step.kind))
          .field("suspect", suspect_text(step.kind))
          .field("how", step.how)
          .field("possible", step.problem.empty());
      json.text_field("problem", step.problem);
      json.end_object();
    });
    json.end_object();
  });
  return json.end_object().take();
}

}  // namespace tidemark::report
