import { basename, dirname, join } from 'node:path';
import type { ServedPolicyPhase, ServedPolicyStatus } from '../../server/index.ts';
import { styled } from '../../values/index.ts';
import { oneLine, table, terminalWidth } from '../table.ts';

const PHASE_COLORS: Readonly<Record<ServedPolicyPhase, 'green' | 'yellow' | 'red'>> = {
  Active: 'green',
  Pending: 'yellow',
  Updating: 'yellow',
  Degraded: 'yellow',
  Error: 'red',
};

/** The policies of a server as a table. */
export function policyTable(policies: readonly ServedPolicyStatus[]): string {
  return table(
    [
      { header: 'POLICY', cell: ({ id }) => oneLine(id) },
      { header: 'MODE', cell: ({ mode }) => mode },
      { header: 'PHASE', cell: ({ phase }) => styled(PHASE_COLORS[phase], phase) },
      { header: 'MODULE', cell: moduleNames },
      ...(policies.every(({ phase }) => phase === 'Active') ? [] : [{ header: 'MESSAGE', cell: messageText }]),
    ],
    policies,
    terminalWidth(),
  );
}

function messageText({ phase, message }: ServedPolicyStatus): string {
  return phase === 'Active' ? '' : oneLine(message, 100);
}

function moduleNames({ desired, serving }: ServedPolicyStatus): string {
  const references = Object.keys((serving ?? desired)?.modules ?? {});
  return references.map(moduleName).join(', ') || '-';
}

/** What most modules are called in the folder of their policy. */
const MODULE_FILE = 'policy.wasm';

/** The name in a registry; of a file, its last two parts, without a file name that says nothing. Without digests. */
function moduleName(reference: string): string {
  const [folder, file] = [basename(dirname(reference)), basename(reference)];
  const name = reference.startsWith('registry://') ? file : file === MODULE_FILE ? folder : join(folder, file);
  return oneLine(name.replace(/@sha256:[0-9a-f]+$/, ''));
}
