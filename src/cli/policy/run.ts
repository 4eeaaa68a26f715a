// `portcullis run`: evaluates one request by one policy, with the flags and output of `kwctl run`.
import { writeFile } from 'node:fs/promises';
import { Command, Option } from 'commander';
import { type Observation, type PatchOperation, readReview, type Verdict } from '../../engine/index.ts';
import type { PolicyLogEntry } from '../../engine/capabilities/index.ts';
import { type AdmissionResponse, verdictOf } from '../../evaluation/index.ts';
import { fileProblem } from '../../files/index.ts';
import { CliError, EXIT, usageError } from '../errors.ts';
import { isVerdict, PolicyRunner } from './policy-runner.ts';
import type { SessionCapabilities } from './session-capabilities.ts';
import { type DataFormat, dataText } from '../output.ts';
import { isMessageProblem } from './message-problems.ts';
import { addPolicyFlags, type PolicyFlags, policyUnderTest } from './policy-flags.ts';
import { printWarnings } from './print-warnings.ts';
import { Progress } from '../progress.ts';
import { oneLine } from '../table.ts';
import { parseJson, styled } from '../../values/index.ts';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
type Level = (typeof LEVELS)[number];

interface RunFlags extends PolicyFlags {
  readonly recordHostCapabilitiesInteractions?: string;
  readonly failOn?: 'deny';
  readonly requireMatch?: true;
  readonly logLevel: Level;
  readonly output: DataFormat;
}

export function runCommand(): Command {
  return addPolicyFlags(new Command('run').description('evaluate a request by a policy, and print the response'))
    .addOption(
      new Option(
        '--record-host-capabilities-interactions <file>',
        'record calls of host capabilities and their answers in this file',
      ).conflicts('replayHostCapabilitiesInteractions'),
    )
    .addOption(new Option('--fail-on <what>', 'exit with 1 when the request is denied').choices(['deny']))
    .option('--require-match', 'exit with 1 when the policy does not match the request')
    .addOption(
      new Option('--log-level <level>', 'show log lines of the policy of this level and above')
        .choices([...LEVELS])
        .default('info'),
    )
    .addOption(new Option('-o, --output <format>', 'output format').choices(['json', 'yaml']).default('json'))
    .addOption(new Option('--disable-wasmtime-cache', 'has no effect').hideHelp())
    .addOption(new Option('--image <image>', 'of kubectl run').hideHelp().argParser(refuseImage))
    .addHelpText(
      'after',
      `
Standard output gets the AdmissionResponse and nothing else; the policy's log
and all notes go to standard error.

Exit code: 0 when the policy gave a verdict, also a denial; 1 when it gave none
(it failed, ran out of time, had no cluster to ask), when its settings are not
valid, with --fail-on deny when it denied, and with --require-match when it does
not match the request; 2 for a wrong command line.

Examples:
  portcullis run policy.wasm -r request.json -s settings.yml
  portcullis run policy.wasm -r pod.yaml --user alice --group dev
  kubectl get pod web -o json | portcullis run policy.wasm -r - --operation DELETE
  portcullis run --policies policies.yml --policy my-group -r request.json --fail-on deny`,
    )
    .action(run);
}

/** Refuses the flag of `kubectl run`, which has another meaning. @throws CliError */
function refuseImage(): never {
  throw usageError(
    '--image: run evaluates a request by a policy, and creates no pods',
    'To create a pod, apply its manifest: portcullis apply -f pod.yaml, with --dry-run=server to only see what policies say.',
  );
}

async function run(target: string | undefined, flags: RunFlags): Promise<void> {
  const progress = new Progress();
  await using runner = new PolicyRunner({
    onLog: (entry) => {
      if (flags.policies !== undefined || !isFailure(entry)) {
        showLog(isMessageProblem(entry) ? { ...entry, level: 'warn' } : entry, flags.logLevel, progress);
      }
    },
  });
  const { policy, request, session, sources, trustRoot, notes, warnings, unmatched } = await policyUnderTest(
    target,
    flags,
    progress,
  );
  const note = (text: string): void => progress.line(`${label('yellow', 'note:')} ${text}`);
  notes.forEach(note);
  printWarnings(warnings, progress);
  const { capabilities } = runner;
  capabilities.setSources(sources, trustRoot);
  capabilities.begin(session);
  const evaluated = await progress.during(`running ${policy.definition.id}`, async () => {
    const more = await runner.load(policy);
    const result = unmatched === undefined ? await runner.evaluate(request) : undefined;
    more.forEach(note);
    return result;
  });
  if (evaluated === undefined) {
    note(`${unmatched}. An API server admits it without asking; --ignore-rules evaluates it nevertheless`);
    process.stdout.write(dataText(admittedUnasked(request.body), flags.output, { pretty: process.stdout.isTTY }));
    process.exitCode = flags.requireMatch === true ? EXIT.failed : EXIT.ok;
    return;
  }
  if (evaluated.refused !== undefined) {
    const message = evaluated.refused;
    const hint =
      'Expected is an AdmissionReview, the AdmissionRequest inside of one, an object with apiVersion and kind, or anything with --raw.';
    const source = flags.requestPath === '-' ? 'standard input' : flags.requestPath;
    throw new CliError(`${source}: ${message}`, message.includes('wrong shape') ? { hint } : {});
  }
  if (flags.recordHostCapabilitiesInteractions !== undefined) {
    await saveSession(flags.recordHostCapabilitiesInteractions, capabilities.recording());
  }
  const { response, observation } = evaluated;
  const verdict = verdictOf(response);
  process.stdout.write(dataText(response, flags.output, { pretty: process.stdout.isTTY }));
  requireVerdict(observation, verdict.message ?? '', capabilities);
  if (process.stderr.isTTY) {
    progress.line(summary(verdict));
  }
  if (flags.failOn === 'deny' && !verdict.allowed) {
    process.exitCode = EXIT.failed;
  }
}

/** The response to a request that the policy does not match. */
function admittedUnasked(body: Uint8Array): AdmissionResponse {
  return { uid: readReview('validate', body).uid, allowed: true, auditAnnotations: null, warnings: null };
}

async function saveSession(path: string, session: string): Promise<void> {
  try {
    await writeFile(path, session);
  } catch (error) {
    throw new CliError(`the session cannot be written to ${path}: ${fileProblem(error)}`, { cause: error });
  }
}

/** Fails when the response is not a verdict of the policy, so that a broken policy does not pass a pipeline. */
function requireVerdict(
  observation: Observation,
  message: string,
  { withoutCluster, recordedErrors }: SessionCapabilities,
): void {
  if (withoutCluster.length > 0) {
    throw new CliError(
      `the policy called ${withoutCluster.join(', ')}, and there is no cluster to answer it: do not trust the response`,
      {
        hint: 'Give it recorded answers with --replay-host-capabilities-interactions FILE.',
      },
    );
  }
  const { policy, outcome } = observation;
  if (outcome === 'timeout') {
    throw new CliError(`${policy} gave no verdict in time`, {
      hint: 'Give it longer with --timeout SECONDS, if it does not loop for ever.',
    });
  }
  // A policy of Kubewarden's SDK rejects with the host's error, such as that a namespace does not exist.
  const isHostError = outcome === 'failed' && recordedErrors.some((error) => message.includes(error));
  if (!isVerdict(observation) && !isHostError) {
    throw new CliError(`${policy} gave no verdict: ${oneLine(message, 500)}`);
  }
}

type Color = 'red' | 'green' | 'yellow' | 'cyan' | 'gray';

function label(color: Color, text: string): string {
  return styled(color, text, { stream: process.stderr });
}

const LEVEL_COLORS: Readonly<Record<Level, Color>> = { debug: 'gray', info: 'cyan', warn: 'yellow', error: 'red' };

function showLog({ policy, level, message, fields }: PolicyLogEntry, least: Level, progress: Progress): void {
  if (LEVELS.indexOf(level) < LEVELS.indexOf(least)) {
    return;
  }
  const details = Object.entries(fields).map(([key, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return label('gray', ` ${oneLine(key)}=${oneLine(text, 500)}`);
  });
  progress.line(
    `${label(LEVEL_COLORS[level], level.padEnd(5))} ${policy}: ${oneLine(message, 2_000)}${details.join('')}`,
  );
}

/** Whether the entry says why a policy gave no verdict, which is printed at the end. */
function isFailure({ level, message }: PolicyLogEntry): boolean {
  return level === 'error' && (message === 'the policy failed' || message === 'the policy timed out');
}

/** The verdict in a few lines, for a terminal. */
function summary({ allowed, message: reason, causes, patch, warnings }: Verdict): string {
  const decision = allowed ? label('green', '✔ allowed') : label('red', '✘ denied');
  const lines = [`${decision}${reason === undefined ? '' : `: ${oneLine(reason)}`}`];
  for (const { field, message = '' } of causes ?? []) {
    lines.push(`  cause    ${field === undefined ? '' : `${field}: `}${oneLine(message)}`);
  }
  for (const operation of patch === undefined ? [] : (parseJson(patch) as PatchOperation[])) {
    const value = 'value' in operation ? ` ${JSON.stringify(operation.value)}` : '';
    lines.push(`  patch    ${oneLine(`${operation.op} ${operation.path}${value}`, 200)}`);
  }
  for (const warning of warnings ?? []) {
    lines.push(`  warning  ${oneLine(warning)}`);
  }
  return lines.join('\n');
}
