import sys
from pathlib import Path

# Helpers that several test folders share (speech.py, transcripts.py, serving.py) lie beside this file.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "pipeline"))
