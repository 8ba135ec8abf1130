"""safetensors_seeds.py FOLDER: writes what the fuzz target safetensors starts from."""
# SPDX-License-Identifier: BSD-3-Clause
import convert_seeds

convert_seeds.main()
