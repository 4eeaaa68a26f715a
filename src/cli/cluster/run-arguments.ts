/** Whether the arguments of `run` are those of kubectl, which creates a pod. */
export function isPodRun(argv: readonly string[]): boolean {
  return argv[2] === 'run' && argv.some((word) => word === '--image' || word.startsWith('--image='));
}
