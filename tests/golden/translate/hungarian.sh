# the Hungarian guide, from the dump to the two sets of examples
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
