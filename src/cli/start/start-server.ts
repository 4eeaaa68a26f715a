import { basename, dirname, join } from 'node:path';
import { Registry } from 'prom-client';
import { styled } from '../../values/index.ts';
import { createLog } from '../../log/index.ts';
import type { LocalCertificates } from '../../control/index.ts';
import {
  type ServedPolicyPhase,
  PolicyServer,
  type PolicyServerOptions,
  type ServedPolicyStatus,
} from '../../server/index.ts';
import { onFreePorts } from './free-ports.ts';
import type { StartFlags } from './start-flags.ts';
import { oneLine, table, terminalWidth } from '../table.ts';

export interface StartedServer {
  readonly server: PolicyServer;
  /** The registry of its metrics page. */
  readonly registry: Registry;
  readonly admission: string;
  readonly operations: string;
}

/** Starts a policy server on the first free ports. */
export function startServer(
  flags: StartFlags,
  certificates: LocalCertificates,
  options: Pick<
    PolicyServerOptions,
    | 'policiesFile'
    | 'policyManifests'
    | 'replica'
    | 'dataDir'
    | 'cluster'
    | 'sources'
    | 'verification'
    | 'trustRoot'
    | 'log'
  >,
): Promise<StartedServer> {
  return onFreePorts([flags.port, flags.operationsPort], async ([port = 0, operationsPort = 0]) => {
    // A new registry for each attempt, because a metric cannot be registered twice.
    const registry = new Registry();
    const server = new PolicyServer({ ...options, port, operationsPort, tls: certificates, registry });
    const { admission, operations } = await server.start();
    return { server, registry, admission: admission.replace('127.0.0.1', 'localhost'), operations };
  });
}

/** A log of warnings and errors in text form. */
export function startLog(): ReturnType<typeof createLog> {
  return createLog({ level: 'warn', format: 'text', color: process.stdout.isTTY });
}

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

/** Lines of bold headings and texts, aligned. */
export function headed(rows: readonly (readonly [heading: string, text: string])[]): string {
  const width = Math.max(...rows.map(([heading]) => heading.length));
  return rows
    .map(([heading, text]) => `${styled('bold', heading)}${' '.repeat(width - heading.length)}   ${text}`)
    .join('\n');
}
