# SPDX-License-Identifier: Apache-2.0
"""Stands in for Hugging Face transformers: the hooks of a callback in the order of its Trainer."""

from transformers.trainer_callback import TrainerCallback


class _State:
    epoch = 0
    global_step = 0


class Trainer:
    def __init__(self, callbacks, optimizer=None, train_step=lambda: None):
        assert all(isinstance(callback, TrainerCallback) for callback in callbacks)
        self._callbacks = callbacks
        self._state = _State()
        self._optimizer = optimizer
        self._train_step = train_step

    def _call(self, hook, **kwargs):
        for callback in self._callbacks:
            result = getattr(callback, hook)(
                object(), self._state, object(), model=None, optimizer=self._optimizer, **kwargs
            )
            assert result is None  # anything else would replace the control object

    def train(self, epochs, steps_per_epoch):
        self._call("on_train_begin")
        for epoch in range(epochs):
            self._call("on_epoch_begin")
            for step in range(steps_per_epoch):
                self._call("on_step_begin")
                self._train_step()
                self._state.global_step += 1
                self._state.epoch = epoch + (step + 1) / steps_per_epoch
                self._call("on_step_end")
            self._call("on_epoch_end")
            for _ in range(3):
                self._call("on_prediction_step")
            self._call("on_evaluate", metrics={})
        self._call("on_train_end")
