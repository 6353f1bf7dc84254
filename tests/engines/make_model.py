"""Writes the packaged language model as vLLM reads it: float32 safetensors with tokenizer and template.

    python tests/engines/make_model.py GGUF FOLDER

Runs in the engines' environment, which has transformers; what is in the GGUF file is dequantised.
"""

import sys
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer


def main(gguf: Path, folder: Path) -> None:
    where = {"gguf_file": gguf.name}
    AutoTokenizer.from_pretrained(gguf.parent, **where).save_pretrained(folder)
    AutoModelForCausalLM.from_pretrained(gguf.parent, **where).save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
