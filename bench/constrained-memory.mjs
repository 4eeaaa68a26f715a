// Preloaded (node --import): the process takes PORTCULLIS_BENCH_LIMIT_BYTES for the memory limit of its control group, where the
// bench may not create one. The bench itself ends a process that exceeds it.
const bytes = Number(process.env.PORTCULLIS_BENCH_LIMIT_BYTES);
process.constrainedMemory = () => bytes;
