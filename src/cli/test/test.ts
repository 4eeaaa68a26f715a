// `portcullis test`: declarative tests of policies; see docs/testing.md.
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { styleText } from 'node:util';
import { Command, InvalidArgumentError, Option } from 'commander';
import { RE2JS } from 're2js';
import type { SourcesConfig, TrustRoot, Verification } from '../../modules/index.ts';
import { readText } from '../document.ts';
import { CliError, EXIT, fileProblem, usageError } from '../errors.ts';
import { readSources } from '../module/read-sources.ts';
import { readTrustRoot } from '../module/read-verification.ts';
import { addSignatureFlags, readSignatureFlags, type SignatureFlags } from '../module/signature-flags.ts';
import { addSourceFlags, type SourceFlags } from '../module/source-flags.ts';
import { dataText } from '../output.ts';
import { dataReport } from './data-report.ts';
import { discover, suiteName, TEST_FILES } from './discover.ts';
import { FileStamps } from './file-stamps.ts';
import { junitReport } from './junit-report.ts';
import { prepareSuite } from './prepare-suite.ts';
import { readSuite } from './read-suite.ts';
import { type SuiteResult, SuiteRunner } from './suite-runner.ts';
import { exitCodeOf, summarize } from './summary.ts';
import { textReport } from './text-report.ts';
import { seconds } from '../policy/policy-flags.ts';
import { Progress } from '../progress.ts';
import { stopSignal } from '../signals.ts';
import { errorText } from '../../values/index.ts';

const FORMATS = ['table', 'json', 'yaml', 'junit'] as const;
type Format = (typeof FORMATS)[number];

/** Polling interval of `--watch`. Milliseconds. */
const WATCH_MS = 300;
/** Polling takes at most this share of the time, however many files there are. */
const WATCH_SHARE = 0.05;
/** Clears the screen and the scrollback of a terminal, and moves to the first line. */
const CLEAR = '\u001B[2J\u001B[3J\u001B[H';

interface TestFlags extends SignatureFlags, SourceFlags {
  readonly filter?: RE2JS;
  readonly watch?: true;
  readonly timeout?: number;
  readonly output: Format;
  readonly outputFile?: readonly ReportFile[];
}

/** A report that is also written to a file. */
interface ReportFile {
  readonly format: Format;
  readonly path: string;
}

export function testCommand(): Command {
  const command = new Command('test')
    .description('run tests of policies: requests and expected responses in YAML files')
    .argument('[path...]', `test files, or folders with ${TEST_FILES} in them or below (default: .)`)
    .addOption(
      new Option(
        '--filter <pattern>',
        'only cases whose "suite › case" matches this RE2 pattern; (?i) ignores case',
      ).argParser(pattern),
    )
    .option('--watch', 'run affected tests again when a file changes; Ctrl-C stops');
  return addSourceFlags(addSignatureFlags(command))
    .addOption(
      new Option('--timeout <seconds>', 'timeout of one evaluation (default: that of the policy, or 2)').argParser(
        seconds,
      ),
    )
    .addOption(
      new Option('-o, --output <format>', 'output format').choices([...FORMATS]).default('table' satisfies Format),
    )
    .option(
      '--output-file <format=file>',
      'also write the results to a file, such as junit=report.xml; repeatable',
      reportFile,
    )
    .addHelpText(
      'after',
      `
Exit code: 0 when all cases passed; 1 when one failed, or its policy gave no verdict; 2 when a test file or what it
names cannot be read, there are no tests, or the command line is wrong.

Examples:
  portcullis test
  portcullis test policies/ --filter 'required-labels › .*rejected'
  portcullis test --output-file junit=report.xml
  portcullis test --watch`,
    )
    .action(test);
}

function pattern(text: string): RE2JS {
  try {
    return RE2JS.compile(text);
  } catch (error) {
    throw new InvalidArgumentError(`Expected an RE2 pattern: ${errorText(error)}.`);
  }
}

function reportFile(text: string, previous: readonly ReportFile[] = []): readonly ReportFile[] {
  const [, name = '', path = ''] = /^([^=]*)=(.+)$/s.exec(text) ?? [];
  const format = FORMATS.find((known) => known === name);
  if (format === undefined) {
    throw new InvalidArgumentError(`Expected FORMAT=FILE with one of ${FORMATS.join(', ')}, got ${text}.`);
  }
  return [...previous, { format, path }];
}

async function test(paths: readonly string[], flags: TestFlags): Promise<void> {
  if (flags.watch === true && flags.output !== 'table') {
    throw usageError(`--watch needs -o table, got ${flags.output}`);
  }
  const [sources, verification, trustRoot] = await Promise.all([
    readSources(flags),
    readSignatureFlags(flags),
    readTrustRoot(flags.sigstoreTrustConfig),
  ]);
  await using session = new TestSession(paths.length === 0 ? ['.'] : paths, flags, {
    sources,
    verification,
    trustRoot,
  });
  if (flags.watch === true) {
    await watch(session);
    return;
  }
  const { results } = await session.run(await session.discover());
  const summary = summarize(results);
  if (flags.filter !== undefined && summary.cases === 0 && summary.problems === 0) {
    throw usageError(`no case matches --filter ${flags.filter.pattern()}`, 'It is matched against "suite › case".');
  }
  process.stdout.write(reportText(results, flags.output, process.stdout));
  await session.writeFiles(results);
  process.exitCode = exitCodeOf(summary);
}

/** Runs affected suites after each change, until Ctrl-C. */
async function watch(session: TestSession): Promise<void> {
  const ended = new AbortController();
  void stopSignal(['SIGINT', 'SIGTERM', 'SIGHUP']).then(() => ended.abort());
  let shown = '';
  while (!ended.signal.aborted) {
    const start = performance.now();
    const text = await watchRound(session);
    if (text !== shown && text !== '') {
      shown = text;
      process.stdout.write(process.stdout.isTTY ? `${CLEAR}${text}` : text);
    }
    const spent = performance.now() - start;
    await sleep(Math.max(WATCH_MS, spent / WATCH_SHARE), undefined, { signal: ended.signal }).catch(() => undefined);
  }
}

/** The text to print; empty when nothing has changed. */
async function watchRound(session: TestSession): Promise<string> {
  try {
    const { results, hasChanged } = await session.run(await session.discover());
    if (!hasChanged) {
      return '';
    }
    await session.writeFiles(results);
    const report = reportText(results, 'table', process.stdout);
    return `${report}\n${styleText('gray', 'Watching for changes; Ctrl-C stops.', { stream: process.stdout })}\n`;
  } catch (error) {
    return `${errorText(error)}\n`;
  }
}

interface KnownSuite {
  /** The files that the result depends on. */
  readonly files: FileStamps;
  readonly result: SuiteResult;
}

/** How modules are fetched. */
interface FetchingOptions {
  readonly sources: SourcesConfig;
  readonly verification: Verification | undefined;
  readonly trustRoot: TrustRoot | undefined;
}

/** Runs suites, and reruns only those of which a file has changed. */
class TestSession implements AsyncDisposable {
  readonly #paths: readonly string[];
  readonly #flags: TestFlags;
  readonly #fetching: FetchingOptions;
  readonly #progress = new Progress();
  readonly #runner: SuiteRunner;
  #known = new Map<string, KnownSuite>();
  readonly #noted = new Set<string>();

  constructor(paths: readonly string[], flags: TestFlags, fetching: FetchingOptions) {
    this.#paths = paths;
    this.#flags = flags;
    this.#fetching = fetching;
    this.#runner = new SuiteRunner(fetching.sources, fetching.trustRoot);
  }

  async discover(): Promise<readonly string[]> {
    return await discover(this.#paths);
  }

  async run(
    files: readonly string[],
  ): Promise<{ readonly results: readonly SuiteResult[]; readonly hasChanged: boolean }> {
    const known = new Map<string, KnownSuite>();
    let hasChanged = files.length !== this.#known.size;
    for (const [index, file] of files.entries()) {
      const before = this.#known.get(file);
      if (before !== undefined && !before.files.hasChanged()) {
        known.set(file, before);
      } else {
        hasChanged = true;
        const label = `testing ${file} (${index + 1} of ${files.length})`;
        known.set(file, await this.#progress.during(label, () => this.#suite(file)));
      }
    }
    this.#known = known;
    return { results: [...known.values()].map(({ result }) => result), hasChanged };
  }

  async writeFiles(results: readonly SuiteResult[]): Promise<void> {
    for (const { format, path } of this.#flags.outputFile ?? []) {
      try {
        await writeFile(path, reportText(results, format, undefined));
      } catch (error) {
        const exitCode = EXIT.usage;
        throw new CliError(`${path} cannot be written: ${fileProblem(error)}`, { cause: error, exitCode });
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#runner[Symbol.asyncDispose]();
  }

  async #suite(file: string): Promise<KnownSuite> {
    const files = new FileStamps();
    files.add(resolve(file));
    return { files, result: await this.#result(file, (path) => files.add(path)) };
  }

  async #result(file: string, onFile: (path: string) => void): Promise<SuiteResult> {
    const { filter, timeout } = this.#flags;
    try {
      const text = await readText(file);
      const suite = readSuite(text, file);
      const prepared = await prepareSuite(suite, text, {
        progress: this.#progress,
        ...this.#fetching,
        ...(timeout === undefined ? {} : { timeout }),
        onFile,
      });
      const result = await this.#runner.run(
        prepared,
        ({ name }) => filter === undefined || filter.matcher(`${suite.name} › ${name}`).find(),
      );
      for (const note of result.notes.filter((text_) => !this.#noted.has(text_))) {
        this.#noted.add(note);
        this.#progress.line(`${styleText('yellow', 'note:', { stream: process.stderr })} ${file}: ${note}`);
      }
      return result;
    } catch (error) {
      const hint = error instanceof CliError && error.hint !== undefined ? `\n${error.hint}` : '';
      const problem = `${errorText(error)}${hint}`;
      return { name: suiteName(file), file, cases: [], skipped: 0, problem, notes: [], durationMs: 0 };
    }
  }
}

function reportText(results: readonly SuiteResult[], format: Format, stream: NodeJS.WriteStream | undefined): string {
  switch (format) {
    case 'table':
      return textReport(results, { color: stream !== undefined && hasColors(stream) });
    case 'junit':
      return junitReport(results);
    case 'json':
    case 'yaml':
      return dataText(dataReport(results), format, { pretty: true });
    default:
      return format satisfies never;
  }
}

/** Whether Node would print styles on standard output: https://nodejs.org/api/util.html#utilstyletextformat-text-options */
function hasColors(stream: NodeJS.WriteStream): boolean {
  return styleText('red', 'x', { stream }) !== 'x';
}
