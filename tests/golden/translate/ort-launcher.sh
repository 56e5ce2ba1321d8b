# the ONNX Runtime example's scripts/run_pretraining_ort.sh with what it contains, and the optimizer in parts
bash scripts/run_pretraining_ort.sh 4096 6e-3 fp16 8 0.2843 7038 200 false true true 32 42 bert true true - 4096 4e-3 0.128 1563 - /data/128 /data/512 /workspace/bert None 32 true
