// `portcullis test` of test files: runs them once, or again after each change.
import { resolve } from 'node:path';
import type { RE2JS } from 're2js';
import { styled } from '../../../values/index.ts';
import type { TrustRoot, Verification } from '../../../modules/index.ts';
import type { SourcesConfig } from '../../../modules/sources/index.ts';
import { readText } from '../../document.ts';
import { usageError } from '../../errors.ts';
import { dataText } from '../../output.ts';
import { warningText } from '../../policy/policy-warning.ts';
import { Progress } from '../../progress.ts';
import { dataReport } from './data-report.ts';
import { discover, suiteName } from './discover.ts';
import { FileStamps } from './file-stamps.ts';
import { prepareSuite } from './prepare-suite.ts';
import { readSuite } from './read-suite.ts';
import {
  checksText,
  type Format,
  hasColors,
  isCheckFormat,
  type ReportFile,
  widthOf,
  writeReports,
} from './report-formats.ts';
import { suiteChecks } from './suite-checks.ts';
import { type SuiteResult, SuiteRunner } from './suite-runner.ts';
import { exitCodeOf, summarize } from './summary.ts';
import { textReport } from './text-report.ts';
import { problemText, watchChanges } from './watch-changes.ts';

export interface SuiteFlags {
  readonly filter?: RE2JS;
  readonly watch?: true;
  readonly timeout?: number;
  readonly output: Format;
  readonly outputFile?: readonly ReportFile[];
}

/** How modules are fetched. */
export interface FetchingOptions {
  readonly sources: SourcesConfig;
  readonly verification: Verification | undefined;
  readonly trustRoot: TrustRoot | undefined;
}

/** Runs test files, prints and writes the results. Returns the exit code. */
export async function testSuites(
  paths: readonly string[],
  flags: SuiteFlags,
  fetching: FetchingOptions,
): Promise<number> {
  await using session = new TestSession(paths.length === 0 ? ['.'] : paths, flags, fetching);
  if (flags.watch === true) {
    await watchChanges(() => watchRound(session));
    return 0;
  }
  const { results } = await session.run(await session.discover());
  const summary = summarize(results);
  if (flags.filter !== undefined && summary.cases === 0 && summary.problems === 0) {
    throw usageError(`no case matches --filter ${flags.filter.pattern()}`, 'It is matched against "suite › case".');
  }
  process.stdout.write(reportText(results, flags.output, process.stdout));
  await session.writeFiles(results);
  return exitCodeOf(summary);
}

/** The text to print; empty when nothing has changed. */
async function watchRound(session: TestSession): Promise<string> {
  const { results, hasChanged } = await session.run(await session.discover());
  if (!hasChanged) {
    return '';
  }
  await session.writeFiles(results);
  return reportText(results, 'table', process.stdout);
}

interface KnownSuite {
  /** The files that the result depends on. */
  readonly files: FileStamps;
  readonly result: SuiteResult;
}

/** Runs suites, and reruns only those of which a file has changed. */
class TestSession implements AsyncDisposable {
  readonly #paths: readonly string[];
  readonly #flags: SuiteFlags;
  readonly #fetching: FetchingOptions;
  readonly #progress = new Progress();
  readonly #runner: SuiteRunner;
  #known = new Map<string, KnownSuite>();
  readonly #noted = new Set<string>();

  constructor(paths: readonly string[], flags: SuiteFlags, fetching: FetchingOptions) {
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
    await writeReports(this.#flags.outputFile ?? [], (format) => reportText(results, format, undefined));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#runner[Symbol.asyncDispose]();
  }

  async #suite(file: string): Promise<KnownSuite> {
    const files = new FileStamps();
    files.add(resolve(file));
    return { files, result: await this.#result(file, (path) => files.add(path)) };
  }

  /** Prints a warning once. */
  #warn(warning: string): void {
    if (!this.#noted.has(warning)) {
      this.#noted.add(warning);
      this.#progress.line(`${styled('yellow', 'warning:', { stream: process.stderr })} ${warning}`);
    }
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
        this.#progress.line(`${styled('yellow', 'note:', { stream: process.stderr })} ${file}: ${note}`);
      }
      for (const warning of result.warnings ?? []) {
        this.#warn(warning.place === undefined ? `${file}: ${warningText(warning)}` : warningText(warning));
      }
      return result;
    } catch (error) {
      const problem = problemText(error);
      return { name: suiteName(file), file, cases: [], skipped: 0, problem, notes: [], durationMs: 0 };
    }
  }
}

function reportText(results: readonly SuiteResult[], format: Format, stream: NodeJS.WriteStream | undefined): string {
  if (isCheckFormat(format)) {
    return checksText(suiteChecks(results), format);
  }
  return format === 'table'
    ? textReport(results, { color: hasColors(stream), ...widthOf(stream) })
    : dataText(dataReport(results), format, { pretty: true });
}
