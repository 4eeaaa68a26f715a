// `portcullis bench`: measures evaluations of one request by one policy, in one thread, without a network.
import { availableParallelism, cpus, loadavg } from 'node:os';
import { Command, InvalidArgumentError, Option } from 'commander';
import { styled } from '../../values/index.ts';
import { CliError } from '../errors.ts';
import { countText, dataText, durationText, type OutputFormat, outputOption, sizeText } from '../output.ts';
import { addPolicyFlags, type PolicyFlags, policyUnderTest } from './policy-flags.ts';
import { type RunResult, PolicyRunner } from './policy-runner.ts';
import { printWarnings } from './print-warnings.ts';
import { Progress } from '../progress.ts';
import { table } from '../table.ts';

const DEFAULT_DURATION_SECONDS = 2;
/** Evaluations after which V8 has optimised what it will, or the time that slow policies get instead. */
const WARM_UP_EVALUATIONS = 2_000;
const WARM_UP_MS = 500;
/** Requests that are submitted ahead, so that the worker never waits for the next one. */
const REQUESTS_AHEAD = 16;

interface BenchFlags extends PolicyFlags {
  readonly iterations?: number;
  readonly duration?: number;
  readonly output: OutputFormat;
}

/** Times in microseconds. */
interface Figures {
  readonly warmUpEvaluations: number;
  readonly evaluations: number;
  readonly perSecond: number;
  readonly latencyMicroseconds: {
    readonly p50: number;
    readonly p90: number;
    readonly p99: number;
    readonly max: number;
  };
}

/** The output as JSON and YAML. */
interface BenchReport extends Figures {
  readonly policy: string;
  readonly allowed: boolean;
  readonly requestBytes: number;
  /** Whether an instance is restored after each evaluation; if not, each has a new one, or the policy is builtin. */
  readonly isRestored: boolean;
  /** The same with a new instance for each evaluation; null where instances are not restored. */
  readonly freshInstances: Figures | null;
  readonly machine: {
    readonly processor: string;
    readonly processors: number;
    /** Load averages of 1, 5 and 15 minutes before the bench. */
    readonly load: readonly number[];
    readonly node: string;
  };
}

export function benchCommand(): Command {
  return addPolicyFlags(
    new Command('bench').description('measure how fast a policy evaluates a request, in one thread'),
  )
    .addOption(
      new Option('-n, --iterations <count>', 'stop after this number of evaluations')
        .argParser(positive)
        .conflicts('duration'),
    )
    .addOption(
      new Option('--duration <seconds>', `stop after this time (default: ${DEFAULT_DURATION_SECONDS})`).argParser(
        positive,
      ),
    )
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
An evaluation is all that a server's worker does for a request: it parses the review, calls the policy and writes the
answer. Some are made to warm up before any is counted. Where the instance of the module is restored after each
evaluation, the same is measured with a new instance for each.

Examples:
  portcullis bench policy.wasm -r request.json -s settings.yml
  portcullis bench --policies policies.yml --policy my-group -r request.json -n 10000 -o json`,
    )
    .action(bench);
}

async function bench(target: string | undefined, flags: BenchFlags): Promise<void> {
  const progress = new Progress();
  const load = loadavg();
  const tested = await policyUnderTest(target, flags, progress);
  printWarnings(tested.warnings, progress);
  const { policy, request, notes, unmatched } = tested;
  const { id } = policy.definition;
  const usual = await progress.during(`measuring ${id}`, () => measurePolicy(tested, flags, false));
  for (const note of [...notes, ...(unmatched === undefined ? [] : [unmatched]), ...usual.notes]) {
    progress.line(`${styled('yellow', 'note:', { stream: process.stderr })} ${note}`);
  }
  const fresh = usual.isRestored
    ? await progress.during(`measuring ${id} in new instances`, () => measurePolicy(tested, flags, true))
    : undefined;
  const report: BenchReport = {
    policy: id,
    allowed: usual.allowed,
    requestBytes: request.body.byteLength,
    isRestored: usual.isRestored,
    ...usual.figures,
    freshInstances: fresh?.figures ?? null,
    machine: {
      processor: cpus()[0]?.model.trim() ?? 'unknown',
      processors: availableParallelism(),
      load: load.map((average) => Math.round(average * 100) / 100),
      node: process.version,
    },
  };
  process.stdout.write(
    flags.output === 'table' ? reportText(report) : dataText(report, flags.output, { pretty: true }),
  );
}

interface Measured {
  readonly allowed: boolean;
  readonly isRestored: boolean;
  readonly figures: Figures;
  readonly notes: readonly string[];
}

/** Loads the policy into a thread of its own, and measures evaluations of the request. */
async function measurePolicy(
  { policy, request, session, sources, trustRoot }: Awaited<ReturnType<typeof policyUnderTest>>,
  flags: BenchFlags,
  isFresh: boolean,
): Promise<Measured> {
  const { iterations = Infinity, duration = DEFAULT_DURATION_SECONDS } = flags;
  const durationMs = flags.iterations === undefined ? duration * 1_000 : Infinity;
  const isRecorded = flags.replayHostCapabilitiesInteractions !== undefined;
  await using runner = new PolicyRunner({ isRecorded, isFresh });
  runner.capabilities.setSources(sources, trustRoot);
  runner.capabilities.begin(session);
  const notes = await runner.load(policy);
  const once = (): Promise<RunResult> => runner.evaluate(request);
  const { response } = verdictIn(await once());
  const warmUp = await measure(once, Math.min(WARM_UP_EVALUATIONS, iterations), WARM_UP_MS);
  const times = await measure(once, iterations, durationMs);
  const figures = figuresOf(times, warmUp.length + 1);
  return { allowed: response.allowed, isRestored: runner.isRestored, figures, notes };
}

/** @param times in milliseconds, ascending */
function figuresOf(times: Float64Array, warmUpEvaluations: number): Figures {
  const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  const totalMs = times.reduce((sum, time) => sum + time, 0);
  return {
    warmUpEvaluations,
    evaluations: times.length,
    perSecond: Math.round((times.length / totalMs) * 1_000),
    latencyMicroseconds: {
      p50: microseconds(at(0.5)),
      p90: microseconds(at(0.9)),
      p99: microseconds(at(0.99)),
      max: microseconds(at(1)),
    },
  };
}

/** Times that the worker measured, in milliseconds and ascending: `count` evaluations, or as many as fit into the duration. */
async function measure(
  evaluate: () => Promise<RunResult>,
  count: number,
  durationMs: number,
): Promise<Float64Array<ArrayBuffer>> {
  const times: number[] = [];
  const end = performance.now() + durationMs;
  let submitted = 0;
  const submit = async (): Promise<void> => {
    while (submitted < count && performance.now() < end) {
      submitted += 1;
      const { evaluationMs } = verdictIn(await evaluate());
      times.push(evaluationMs);
    }
  };
  await Promise.all(Array.from({ length: REQUESTS_AHEAD }, submit));
  return Float64Array.from(times).sort();
}

/** @throws CliError when the policy gave no verdict, which is not worth measuring */
function verdictIn(evaluated: RunResult): Exclude<RunResult, { readonly refused: string }> {
  if (evaluated.refused === undefined && evaluated.observation.outcome === 'verdict') {
    return evaluated;
  }
  const reason = evaluated.refused ?? evaluated.response.status?.message ?? '';
  throw new CliError(`nothing to measure, the policy gives no verdict: ${reason}`, {
    hint: 'Look at it with "portcullis run" and the same flags first.',
  });
}

function reportText(report: BenchReport): string {
  const { policy, allowed, requestBytes, freshInstances, machine } = report;
  const heading = `${styled('bold', policy)}: ${allowed ? 'allowed' : 'denied'}, request of ${sizeText(requestBytes)}, one thread`;
  const rows: (Figures & { readonly instance?: string })[] =
    freshInstances === null
      ? [report]
      : [
          { ...report, instance: 'restored after each' },
          { ...freshInstances, instance: 'new for each' },
        ];
  const figures = table(
    [
      { header: 'EVALUATIONS', cell: ({ evaluations }) => countText(evaluations) },
      { header: 'PER SECOND', cell: ({ perSecond }) => countText(perSecond) },
      { header: 'P50', cell: ({ latencyMicroseconds: { p50 } }) => durationText(p50) },
      { header: 'P90', cell: ({ latencyMicroseconds: { p90 } }) => durationText(p90) },
      { header: 'P99', cell: ({ latencyMicroseconds: { p99 } }) => durationText(p99) },
      { header: 'MAX', cell: ({ latencyMicroseconds: { max } }) => durationText(max) },
      ...(freshInstances === null
        ? []
        : [{ header: 'INSTANCE', cell: ({ instance = '' }: (typeof rows)[number]) => instance }]),
    ],
    rows,
  );
  const { processors, processor, load, node } = machine;
  const where = `Load before: ${load.map((average) => average.toFixed(2)).join(' ')} on ${processors} processors (${processor}), Node ${node}`;
  return `${heading}\n\n${figures}\n\n${where}\n`;
}

function microseconds(milliseconds: number): number {
  return Math.round(milliseconds * 10_000) / 10;
}

function positive(text: string): number {
  const value = Number(text);
  if (!/^\d{1,7}$/.test(text) || value < 1) {
    throw new InvalidArgumentError(`Expected a whole number from 1, got ${text}.`);
  }
  return value;
}
