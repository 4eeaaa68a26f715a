// Preloaded (node --import): the process takes PORTCULLIS_BENCH_LIMIT_BYTES for the memory limit of its control group, so that a
// bench needs no right to create one. Nothing enforces the limit: the bench reports the memory that was used.
const bytes = Number(process.env.PORTCULLIS_BENCH_LIMIT_BYTES);
process.constrainedMemory = () => bytes;
