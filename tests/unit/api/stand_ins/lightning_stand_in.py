# SPDX-License-Identifier: Apache-2.0
"""Stands in for Lightning: the hooks of a callback in the order of its Trainer. Made twice, because
the two packages of that name do not know each other's classes."""


def make_package():
    class Callback:
        def _nothing(self, trainer, pl_module, *args, **kwargs):
            pass

        on_train_start = on_train_end = on_train_epoch_start = on_train_epoch_end = _nothing
        on_train_batch_start = on_train_batch_end = _nothing
        on_validation_start = on_validation_end = on_test_start = on_test_end = _nothing

    class Module:
        automatic_optimization = True

    class Trainer:
        def __init__(self, callbacks, accumulate_grad_batches=1, optimizers=()):
            assert all(isinstance(callback, Callback) for callback in callbacks)
            self._callbacks = callbacks
            self._accumulate = accumulate_grad_batches
            self.current_epoch = 0
            self.global_step = 0
            self.optimizers = list(optimizers)
            self.lightning_module = Module()

        def _call(self, hook, *args):
            for callback in self._callbacks:
                getattr(callback, hook)(self, self.lightning_module, *args)

        def _validate(self):
            self._call("on_validation_start")
            self._call("on_validation_end")

        def fit(self, epochs, steps_per_epoch):
            self._validate()  # the sanity check
            self._call("on_train_start")
            self.num_training_batches = steps_per_epoch * self._accumulate
            for self.current_epoch in range(epochs):
                self._call("on_train_epoch_start")
                for batch in range(self.num_training_batches):
                    self._call("on_train_batch_start", None, batch)
                    self.global_step += (batch + 1) % self._accumulate == 0
                    self._call("on_train_batch_end", None, None, batch)
                self._validate()
                self._call("on_train_epoch_end")
            self._call("on_train_end")

    return Callback, Trainer
