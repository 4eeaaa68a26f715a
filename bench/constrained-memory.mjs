// Preloaded (node --import): the process takes the limit of its command in PORTCULLIS_BENCH_LIMITS for the memory limit of its
// control group. The bench itself ends a process that exceeds it.
const mib = JSON.parse(process.env.PORTCULLIS_BENCH_LIMITS)[process.argv[2]];
if (mib !== undefined) {
  process.constrainedMemory = () => mib * 2 ** 20;
}
