# SPDX-License-Identifier: Apache-2.0


class TrainerCallback:
    def _nothing(self, args, state, control, **kwargs):
        pass

    on_init_end = on_train_begin = on_train_end = on_epoch_begin = on_epoch_end = _nothing
    on_step_begin = on_substep_end = on_step_end = on_evaluate = on_save = on_log = _nothing
    on_prediction_step = _nothing
