# SPDX-License-Identifier: Apache-2.0
from lightning_stand_in import make_package

Callback, Trainer = make_package()

import lightning.pytorch.callbacks  # noqa: E402, F401
