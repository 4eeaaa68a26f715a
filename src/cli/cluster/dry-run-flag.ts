// The flag `--dry-run` of commands that write, with the modes of kubectl.
import { Option } from 'commander';

export type DryRunMode = 'none' | 'client' | 'server';

/** The flag; needs `withDryRunMode`. */
export function dryRunOption(): Option {
  return new Option(
    '--dry-run [mode]',
    'server (if no mode is given): the server checks and stores nothing; client: nothing is sent',
  )
    .choices(['none', 'client', 'server'])
    .preset('server')
    .default('none', 'none');
}

/** What a line about an object ends with. */
export function dryRunText(mode: DryRunMode): string {
  return mode === 'none' ? '' : mode === 'server' ? ' (server dry run)' : ' (dry run)';
}
