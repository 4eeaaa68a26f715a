// `portcullis bench`: measures evaluations of one request by one policy, in one thread, without a network.
import { availableParallelism, cpus, loadavg } from 'node:os';
import { styleText } from 'node:util';
import { Command, InvalidArgumentError, Option } from 'commander';
import { CliError } from '../errors.ts';
import { countText, dataText, type OutputFormat, outputOption, sizeText } from '../output.ts';
import { addPolicyFlags, type PolicyFlags, policyUnderTest } from './policy-flags.ts';
import { type Evaluated, PolicyRunner } from './policy-runner.ts';
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

/** The output as JSON and YAML. Times in microseconds. */
interface BenchReport {
  readonly policy: string;
  readonly allowed: boolean;
  readonly requestBytes: number;
  readonly warmUpEvaluations: number;
  readonly evaluations: number;
  readonly perSecond: number;
  readonly latencyMicroseconds: {
    readonly p50: number;
    readonly p90: number;
    readonly p99: number;
    readonly max: number;
  };
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
answer. Some are made to warm up before any is counted.

Examples:
  portcullis bench policy.wasm -r request.json -s settings.yml
  portcullis bench --policies policies.yml --policy my-group -r request.json -n 10000 -o json`,
    )
    .action(bench);
}

async function bench(target: string | undefined, flags: BenchFlags): Promise<void> {
  const progress = new Progress();
  const load = loadavg();
  await using runner = new PolicyRunner({ isRecorded: flags.replayHostCapabilitiesInteractions !== undefined });
  const { policy, request, session, sources, trustRoot, notes, warnings, unmatched } = await policyUnderTest(
    target,
    flags,
    progress,
  );
  printWarnings(warnings, progress);
  runner.capabilities.setSources(sources, trustRoot);
  runner.capabilities.begin(session);
  const { iterations = Infinity, duration = DEFAULT_DURATION_SECONDS } = flags;
  const durationMs = flags.iterations === undefined ? duration * 1_000 : Infinity;
  const { id } = policy.definition;
  const result = await progress.during(`measuring ${id}`, async () => {
    const more = await runner.load(policy);
    const once = (): Promise<Evaluated> => runner.evaluate(request);
    const { response } = verdictIn(await once());
    const warmUp = await measure(once, Math.min(WARM_UP_EVALUATIONS, iterations), WARM_UP_MS);
    const times = await measure(once, iterations, durationMs);
    return {
      allowed: response.allowed,
      times,
      warmUpEvaluations: warmUp.length + 1,
      notes: [...notes, ...(unmatched === undefined ? [] : [unmatched]), ...more],
    };
  });
  for (const note of result.notes) {
    progress.line(`${styleText('yellow', 'note:', { stream: process.stderr })} ${note}`);
  }
  const { times } = result;
  const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  const totalMs = times.reduce((sum, time) => sum + time, 0);
  const report: BenchReport = {
    policy: id,
    allowed: result.allowed,
    requestBytes: request.body.byteLength,
    warmUpEvaluations: result.warmUpEvaluations,
    evaluations: times.length,
    perSecond: Math.round((times.length / totalMs) * 1_000),
    latencyMicroseconds: {
      p50: microseconds(at(0.5)),
      p90: microseconds(at(0.9)),
      p99: microseconds(at(0.99)),
      max: microseconds(at(1)),
    },
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

/** Times that the worker measured, in milliseconds and ascending: `count` evaluations, or as many as fit into the duration. */
async function measure(
  evaluate: () => Promise<Evaluated>,
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
function verdictIn(evaluated: Evaluated): Exclude<Evaluated, { readonly refused: string }> {
  if (evaluated.refused === undefined && evaluated.observation.outcome === 'verdict') {
    return evaluated;
  }
  const reason = evaluated.refused ?? evaluated.response.status?.message ?? '';
  throw new CliError(`nothing to measure, the policy gives no verdict: ${reason}`, {
    hint: 'Look at it with "portcullis run" and the same flags first.',
  });
}

function reportText(report: BenchReport): string {
  const { policy, allowed, requestBytes, evaluations, perSecond, latencyMicroseconds: latency, machine } = report;
  const heading = `${styleText('bold', policy)}: ${allowed ? 'allowed' : 'denied'}, request of ${sizeText(requestBytes)}, one thread`;
  const figures = table(
    [
      { header: 'EVALUATIONS', cell: () => countText(evaluations) },
      { header: 'PER SECOND', cell: () => countText(perSecond) },
      { header: 'P50', cell: () => durationText(latency.p50) },
      { header: 'P90', cell: () => durationText(latency.p90) },
      { header: 'P99', cell: () => durationText(latency.p99) },
      { header: 'MAX', cell: () => durationText(latency.max) },
    ],
    [report],
  );
  const { processors, processor, load, node } = machine;
  const where = `Load before: ${load.map((average) => average.toFixed(2)).join(' ')} on ${processors} processors (${processor}), Node ${node}`;
  return `${heading}\n\n${figures}\n\n${where}\n`;
}

function microseconds(milliseconds: number): number {
  return Math.round(milliseconds * 10_000) / 10;
}

function durationText(value: number): string {
  return value < 1_000
    ? `${value.toFixed(value < 100 ? 1 : 0)} µs`
    : `${(value / 1_000).toFixed(value < 100_000 ? 1 : 0)} ms`;
}

function positive(text: string): number {
  const value = Number(text);
  if (!/^\d{1,7}$/.test(text) || value < 1) {
    throw new InvalidArgumentError(`Expected a whole number from 1, got ${text}.`);
  }
  return value;
}
