/** Commands whose `--dry-run` has a mode. */
const COMMANDS: ReadonlySet<string> = new Set(['apply', 'delete', 'patch']);

/** Arguments of the program in which `--dry-run` has its mode, so that the next argument is not taken for it. */
export function withDryRunMode(argv: readonly string[]): readonly string[] {
  return COMMANDS.has(argv[2] ?? '') ? argv.map((word) => (word === '--dry-run' ? '--dry-run=server' : word)) : argv;
}
