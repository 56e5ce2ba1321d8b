# the whole Hungarian guide on ND40rs_v2: the code, the data, the script as the guide edits it, and its start
git clone https://github.com/microsoft/onnxruntime-training-examples.git
cd onnxruntime-training-examples
git clone --no-checkout https://github.com/NVIDIA/DeepLearningExamples.git
cd DeepLearningExamples/
git checkout 4733603577080dbd1bdcd51864f31e45d5196704
cd ..
mkdir -p workspace
mv DeepLearningExamples/PyTorch/LanguageModeling/BERT/ workspace
rm -rf DeepLearningExamples
cp -r ./nvidia-bert/ort_addon/* workspace/BERT
cd workspace
pip3 install wikiextractor
git clone https://github.com/roberthajdu92/nvidia-bert-wiki-preprocess
mkdir -p ./workspace/BERT/data/download/wikicorpus_hu
cd ./workspace/BERT/data/download/wikicorpus_hu
wget https://dumps.wikimedia.org/huwiki/20210320/huwiki-20210320-pages-articles-multistream.xml.bz2
bzip2 -dv huwiki-20210320-pages-articles-multistream.xml.bz2
mv huwiki-20210320-pages-articles-multistream.xml wikicorpus_hu.xml
cd ../../../../..
python3 -m wikiextractor.WikiExtractor wikicorpus_hu.xml
python3 formatting.py --input_folder=INPUT_FOLDER --output_file=OUTPUT_FILE
quntoken -f spl -m sentence < INPUT_FILE > OUTPUT_FILE
python filtering.py INPUT_SPL_FILE \
--word-chars abcdefghijklmnopqrstuvwxyzáéíóöúüőű \
--language hu \
--langdetect hu \
> OUTPUT_FILE
python3 spmtrain.py INPUT_FILE \
--model_prefix=bert \
--vocab_size=32000 \
--input_sentence_size=100000000 \
--shuffle_input_sentence=true \
--character_coverage=0.9999 \
--model_type=bpe
python3 sent2wordpiece.py bert.vocab > vocab.txt
python3 sharding.py \
--input_file=INPUT_FILE \
--num_shards=50
python3 create_hdf5_files.py --max_seq_length 128 --max_predictions_per_seq 20 --vocab_file=vocab.txt --n_processes=15
python3 create_hdf5_files.py --max_seq_length 512 --max_predictions_per_seq 80 --vocab_file=vocab.txt --n_processes=15
az storage blob upload-batch --account-name STORAGE -d CONTAINER -s ./workspace/BERT/data
cd nvidia-bert/docker
bash build.sh
cd ../..
num_gpus=${4:-8}
gpu_memory_limit_gb=${26:-"32"}
seed=${12:-42}
accumulate_gradients=${10:-"true"}
deepspeed_zero_stage=${27:-"false"}
train_batch_size=${1:-16320}
learning_rate=${2:-"6e-3"}
warmup_proportion=${5:-"0.2843"}
train_steps=${6:-7038}
accumulate_gradients=${10:-"true"}
gradient_accumulation_steps=${11:-340}
train_batch_size_phase2=${17:-8160}
learning_rate_phase2=${18:-"4e-3"}
warmup_proportion_phase2=${19:-"0.128"}
train_steps_phase2=${20:-1563}
gradient_accumulation_steps_phase2=${11:-1020}
cd workspace/BERT
bash ../../nvidia-bert/docker/launch.sh
bash /workspace/bert/scripts/run_pretraining_ort.sh
