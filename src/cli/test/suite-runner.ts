// Runs suites in the module thread, and compares responses with expectations.
import type { PolicyLogEntry } from '../../engine/index.ts';
import type { SuiteAnswer, SuiteJob } from '../module/module-job.ts';
import { GuestOverdue, ModuleRunner, ThreadFailed } from '../module/module-runner.ts';
import { errorText } from '../../values/index.ts';
import { compareVerdict, compareText, type Mismatch } from './compare.ts';
import type { PreparedCase, PreparedSuite } from './prepare-suite.ts';
import type { TestCase } from './suite.ts';

/** Most log lines of a policy that are kept for one case. */
const MAX_LOG_LINES = 20;

/** The result of one case. */
export interface CaseResult {
  readonly test: TestCase;
  readonly status:
    | 'passed'
    /** An expectation was not met. */
    | 'failed'
    /** The policy gave no verdict. */
    | 'error';
  readonly mismatches: readonly Mismatch[];
  /** Why there is no verdict. */
  readonly error?: string;
  readonly log: readonly PolicyLogEntry[];
  readonly durationMs: number;
}

/** The result of one test file. */
export interface SuiteResult {
  readonly name: string;
  readonly file: string;
  readonly cases: readonly CaseResult[];
  /** Cases that the filter excluded. */
  readonly skipped: number;
  /** Why the file could not be run. */
  readonly problem?: string;
  readonly notes: readonly string[];
  readonly durationMs: number;
}

/** Runs suites, one at a time. */
export class SuiteRunner implements AsyncDisposable {
  #thread: ModuleRunner | undefined;
  #run: SuiteRun | undefined;

  /** Runs the cases of a suite that `isWanted` selects. Never throws: errors are results. */
  async run(prepared: PreparedSuite, isWanted: (test: TestCase) => boolean = () => true): Promise<SuiteResult> {
    const run = new SuiteRun(prepared, isWanted);
    this.#run = run;
    const start = performance.now();
    const notes = new Set<string>();
    for (let job = run.remaining(); job.variants.length > 0; job = run.remaining()) {
      this.#thread ??= new ModuleRunner({
        onLog: (entry) => this.#run?.log(entry),
        onAnswer: (index, answer, durationMs) => this.#run?.answer(index, answer, durationMs),
      });
      try {
        const result = await this.#thread.perform({ task: 'test', suite: job });
        result.notes.forEach((note) => notes.add(note));
      } catch (error) {
        run.failed(error, job);
        await this[Symbol.asyncDispose]();
      }
    }
    const { suite } = prepared;
    const cases = run.results();
    return {
      name: suite.name,
      file: suite.file,
      cases,
      skipped: prepared.cases.length - cases.length,
      notes: [...notes],
      durationMs: performance.now() - start,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const thread = this.#thread;
    this.#thread = undefined;
    await thread?.[Symbol.asyncDispose]();
  }
}

/** The state of one suite while it runs. */
class SuiteRun {
  readonly #prepared: PreparedSuite;
  readonly #isWanted: (test: TestCase) => boolean;
  readonly #results = new Map<number, CaseResult>();
  #log: PolicyLogEntry[] = [];

  constructor(prepared: PreparedSuite, isWanted: (test: TestCase) => boolean) {
    this.#prepared = prepared;
    this.#isWanted = isWanted;
  }

  /** Questions without an answer yet. */
  remaining(): SuiteJob {
    const { cases, job } = this.#prepared;
    const isLeft = ({ index }: { readonly index: number }): boolean => {
      const test = cases[index]?.test;
      return test !== undefined && !this.#results.has(index) && this.#isWanted(test);
    };
    const variants = job.variants
      .map((variant) => ({ ...variant, questions: variant.questions.filter(isLeft) }))
      .filter(({ questions }) => questions.length > 0);
    return { modules: job.modules, variants };
  }

  /** In the order of the file. */
  results(): readonly CaseResult[] {
    return [...this.#results].sort(([a], [b]) => a - b).map(([, result]) => result);
  }

  log(entry: PolicyLogEntry): void {
    if (this.#log.length < MAX_LOG_LINES) {
      this.#log.push(entry);
    }
  }

  answer(index: number, answer: SuiteAnswer, durationMs: number): void {
    const prepared = this.#prepared.cases[index];
    if (prepared === undefined) {
      return;
    }
    const mismatches = compareAnswer(prepared, answer);
    const status = answer.kind === 'failed' ? 'error' : mismatches.length > 0 ? 'failed' : 'passed';
    this.#results.set(index, {
      test: prepared.test,
      status,
      mismatches,
      ...(answer.kind === 'failed' ? { error: answer.message } : {}),
      log: this.#log,
      durationMs,
    });
    this.#log = [];
  }

  /** After the thread has ended: the current question gets an error; the others are asked again if that can succeed. */
  failed(error: unknown, job: SuiteJob): void {
    const variants = job.variants.map(({ questions }) => questions.filter(({ index }) => !this.#results.has(index)));
    const [current = []] = variants.filter((questions) => questions.length > 0);
    const [first] = current;
    const isOneCase = (error instanceof GuestOverdue && error.stage === 'evaluating') || error instanceof ThreadFailed;
    const isOneVariant = error instanceof GuestOverdue && error.stage === 'checking its settings';
    const lost = isOneCase ? (first === undefined ? [] : [first]) : isOneVariant ? current : variants.flat();
    for (const { index } of lost) {
      this.answer(index, { kind: 'failed', message: errorText(error) }, 0);
    }
  }
}

function compareAnswer({ expect, object }: PreparedCase, answer: SuiteAnswer): readonly Mismatch[] {
  const wanted = expect.settings;
  switch (answer.kind) {
    case 'failed':
      return [];
    case 'settings-rejected':
      if (wanted === 'rejected') {
        return expect.message === undefined ? [] : compareText('message', expect.message, answer.message);
      }
      return [{ field: 'settings', expected: 'accepted', actual: `rejected: ${answer.message}` }];
    case 'settings-accepted':
      return wanted === 'rejected' ? [{ field: 'settings', expected: 'rejected', actual: 'accepted' }] : [];
    case 'verdict':
      return compareVerdict(expect, answer.verdict, object);
    default:
      return answer satisfies never;
  }
}
