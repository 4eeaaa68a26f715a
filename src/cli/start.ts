// `portcullis start`: a policy server on this machine, for trying things out: certificates of its own, a free port,
// everything in one folder.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { styleText } from 'node:util';
import { Command } from 'commander';
import {
  collectGarbageAlone,
  createLog,
  ensureLocalCertificates,
  type PolicyPhase,
  PolicyServer,
  type PolicyStatus,
  ServerError,
} from '../server/index.ts';
import { CliError } from './errors.ts';
import { stopSignal } from './signals.ts';
import { oneLine, table } from './table.ts';

/** Where `start` keeps its data unless told otherwise. */
export const DATA_DIR = '.portcullis';
/** A file that says that a folder was made by `start`, so that `reset` removes nothing else. */
export const DATA_MARKER = 'README.txt';
/** How many ports are tried from the first one on. */
const PORTS_TRIED = 20;

interface StartFlags {
  readonly dataDir: string;
  readonly policies?: string;
  readonly examples?: true;
  readonly port: string;
  readonly operationsPort: string;
}

export function startCommand(): Command {
  return new Command('start')
    .description('serve policies on this machine: local certificates, free ports, all data in one folder')
    .option('--policies <file>', 'the policies file; watched (default: policies.yml, or the examples)')
    .option('--examples', 'serve the example policies that come with Portcullis')
    .option('--port <port>', 'first port to try for admission reviews', '8443')
    .option('--operations-port <port>', 'first port to try for status and metrics', '8081')
    .option('--data-dir <folder>', 'folder for certificates, module cache and records', DATA_DIR)
    .addHelpText(
      'after',
      `
Examples:
  portcullis start --examples
  portcullis start --policies policies.yml --port 9443`,
    )
    .action(start);
}

async function start(flags: StartFlags): Promise<void> {
  const dataDir = resolve(flags.dataDir);
  const examples = fileURLToPath(new URL('../../examples/policies.yml', import.meta.url));
  const policiesFile =
    flags.policies ?? (flags.examples === true || !existsSync('policies.yml') ? examples : 'policies.yml');
  if (!existsSync(policiesFile)) {
    throw new CliError(`${policiesFile} does not exist`, {
      hint: 'Name a policies file with --policies, or try --examples.',
    });
  }
  makeDataDir(dataDir);
  const certificates = await ensureLocalCertificates(join(dataDir, 'pki'));
  const stopped = stopSignal();
  const { server, addresses } = await startOnFreePorts(
    Number(flags.port),
    Number(flags.operationsPort),
    (port, operationsPort) => {
      const log = createLog({ level: 'warn', format: 'text', color: process.stdout.isTTY });
      collectGarbageAlone();
      return new PolicyServer({ policiesFile, dataDir, port, operationsPort, tls: certificates, log });
    },
  );
  const { policies } = server.policies();
  process.stdout.write(`\n${policyTable(policies)}\n\n`);
  process.stdout.write(
    greeting(addresses, policiesFile, dataDir, certificates.caFile, policiesFile === examples ? examples : undefined),
  );
  await stopped;
  process.stdout.write('\nStopping…\n');
  await server.stop();
}

function makeDataDir(dataDir: string): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const marker = join(dataDir, DATA_MARKER);
  if (!existsSync(marker)) {
    writeFileSync(marker, 'Data of `portcullis start`. `portcullis reset` removes this folder.\n');
  }
}

async function startOnFreePorts(
  firstPort: number,
  firstOperationsPort: number,
  create: (port: number, operationsPort: number) => PolicyServer,
): Promise<{ server: PolicyServer; addresses: { admission: string; operations: string } }> {
  for (let tried = 0; ; tried += 1) {
    const server = create(firstPort + tried, firstOperationsPort + tried);
    try {
      return { server, addresses: await server.start() };
    } catch (error) {
      if (!(error instanceof ServerError) || error.code !== 'port-busy' || tried + 1 === PORTS_TRIED) {
        throw error;
      }
      process.stdout.write(
        `Port ${firstPort + tried} or ${firstOperationsPort + tried} is in use, trying the next ones…\n`,
      );
    }
  }
}

const PHASE_COLORS: Readonly<Record<PolicyPhase, 'green' | 'yellow' | 'red'>> = {
  Active: 'green',
  Pending: 'yellow',
  Updating: 'yellow',
  Degraded: 'yellow',
  Error: 'red',
};

function policyTable(policies: readonly PolicyStatus[]): string {
  return table(
    [
      { header: 'POLICY', cell: ({ id }) => oneLine(id, 50) },
      { header: 'KIND', cell: ({ kind }) => kind },
      { header: 'MODE', cell: ({ mode }) => mode },
      { header: 'PHASE', cell: ({ phase }) => styleText(PHASE_COLORS[phase], phase) },
      { header: 'VERSION', cell: ({ serving }) => serving?.version ?? '-' },
      { header: 'MODULE', cell: moduleNames },
      { header: 'MESSAGE', cell: ({ phase, message }) => (phase === 'Active' ? '' : oneLine(message, 100)) },
    ],
    policies,
  );
}

function moduleNames({ desired, serving }: PolicyStatus): string {
  const references = Object.keys((serving ?? desired)?.modules ?? {});
  return (
    references.map((reference) => oneLine(join(basename(dirname(reference)), basename(reference)))).join(', ') || '-'
  );
}

function greeting(
  addresses: { admission: string; operations: string },
  policiesFile: string,
  dataDir: string,
  caFile: string,
  examples: string | undefined,
): string {
  const here = (path: string): string => {
    const short = relative(process.cwd(), path);
    return short.startsWith('..') ? path : short;
  };
  const admission = addresses.admission.replace('127.0.0.1', 'localhost');
  const heading = (text: string): string => styleText('bold', text);
  const lines = [
    `${heading('Reviews')}    ${admission}/validate/POLICY`,
    `${heading('Status')}     ${addresses.operations}/policies   (also /metrics, /readyz)`,
    `${heading('Policies')}   ${here(resolve(policiesFile))}   edit it while this runs: a good change serves at once, a bad one never does`,
    `${heading('Data')}       ${here(dataDir)}   (\`npm run reset\` removes it)`,
  ];
  if (examples !== undefined) {
    const request = here(join(dirname(examples), 'required-labels', 'requests', 'rejected.json'));
    lines.push(
      '',
      'Ask a policy about a pod without the label that it requires:',
      '',
      `  curl --cacert ${here(caFile)} -H 'Content-Type: application/json' -d @${request} ${admission}/validate/required-labels`,
    );
  }
  return `${lines.join('\n')}\n\nCtrl-C stops.\n`;
}
