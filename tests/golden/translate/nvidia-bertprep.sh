# the ONNX Runtime example's "Download and process data"
python3 ./workspace/bert/data/bertPrep.py --action download --dataset wikicorpus_en
python3 ./workspace/bert/data/bertPrep.py --action download --dataset google_pretrained_weights
python3 ./workspace/bert/data/bertPrep.py --action text_formatting --dataset wikicorpus_en
python3 ./workspace/bert/data/bertPrep.py --action sharding --dataset wikicorpus_en
python3 ./workspace/bert/data/bertPrep.py --action create_hdf5_files --dataset wikicorpus_en --max_seq_length 128 \
 --max_predictions_per_seq 20 --vocab_file ./workspace/bert/data/download/google_pretrained_weights/uncased_L-24_H-1024_A-16/vocab.txt --do_lower_case 1
python3 ./workspace/bert/data/bertPrep.py --action create_hdf5_files --dataset wikicorpus_en --max_seq_length 512 \
 --max_predictions_per_seq 80 --vocab_file ./workspace/bert/data/download/google_pretrained_weights/uncased_L-24_H-1024_A-16/vocab.txt --do_lower_case 1
