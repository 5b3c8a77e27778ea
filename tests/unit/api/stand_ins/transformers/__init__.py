# SPDX-License-Identifier: Apache-2.0
"""Stands in for Hugging Face transformers: the hooks of a callback in the order of its Trainer."""


class TrainerCallback:
    def _nothing(self, args, state, control, **kwargs):
        pass

    on_init_end = on_train_begin = on_train_end = on_epoch_begin = on_epoch_end = _nothing
    on_step_begin = on_substep_end = on_step_end = on_evaluate = on_save = on_log = _nothing
    on_prediction_step = _nothing


class _State:
    epoch = 0
    global_step = 0


class Trainer:
    def __init__(self, callbacks):
        assert all(isinstance(callback, TrainerCallback) for callback in callbacks)
        self._callbacks = callbacks
        self._state = _State()

    def _call(self, hook, **kwargs):
        for callback in self._callbacks:
            getattr(callback, hook)(object(), self._state, object(), model=None, **kwargs)

    def train(self, epochs, steps_per_epoch):
        self._call("on_train_begin")
        for epoch in range(epochs):
            self._call("on_epoch_begin")
            for step in range(steps_per_epoch):
                self._call("on_step_begin")
                self._state.global_step += 1
                self._state.epoch = epoch + (step + 1) / steps_per_epoch
                self._call("on_step_end")
            self._call("on_epoch_end")
            for _ in range(3):
                self._call("on_prediction_step")
            self._call("on_evaluate", metrics={})
        self._call("on_train_end")
