// Runs suites, and compares responses with expectations.
import type { Verdict } from '../../../engine/index.ts';
import type { PolicyLogEntry } from '../../../engine/capabilities/index.ts';
import { verdictOf } from '../../../evaluation/index.ts';
import { errorText } from '../../../values/index.ts';
import type { TrustRoot } from '../../../modules/index.ts';
import type { SourcesConfig } from '../../../modules/sources/index.ts';
import type { PolicyWarning } from '../../policy/policy-warning.ts';
import { isVerdict, PolicyRunner, type RunnablePolicy, SettingsRefusal } from '../../policy/policy-runner.ts';
import { compareVerdict, compareText, type Mismatch } from './compare.ts';
import type { PreparedCase, PreparedSuite, SuiteQuestion } from './prepare-suite.ts';
import type { TestCase } from './suite.ts';
import type { RequestMatch } from '../../policy/match-request.ts';

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
  /** The verdict, if there is one. */
  readonly verdict?: Verdict;
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
  /** About the policy, whatever its cases say. */
  readonly warnings?: readonly PolicyWarning[];
  readonly durationMs: number;
}

/** The answer to the question of a case. */
type SuiteAnswer =
  | { readonly kind: 'verdict'; readonly verdict: Verdict }
  /** The settings are valid, and the case has no request. */
  | { readonly kind: 'settings-accepted' }
  | { readonly kind: 'settings-rejected'; readonly message: string }
  /** The policy does not match the request. */
  | { readonly kind: 'unmatched'; readonly reason: string }
  /** The policy gave no verdict, or one that cannot be trusted. */
  | { readonly kind: 'failed'; readonly message: string };

/** Runs suites, one at a time. */
export class SuiteRunner implements AsyncDisposable {
  #log: PolicyLogEntry[] = [];
  readonly #policies = new PolicyRunner({
    onLog: (entry) => {
      if (this.#log.length < MAX_LOG_LINES) {
        this.#log.push(entry);
      }
    },
  });

  /**
   * @param sources how to reach the registries that policies read. Default: without `sources.yml` and credentials
   * @param trustRoot for keyless signatures of images. Default: none, so that they cannot be verified
   */
  constructor(sources?: SourcesConfig, trustRoot?: TrustRoot) {
    if (sources !== undefined) {
      this.#policies.capabilities.setSources(sources, trustRoot);
    }
  }

  /** Runs the cases of a suite that `isWanted` selects. Never throws: errors are results. */
  async run(prepared: PreparedSuite, isWanted: (test: TestCase) => boolean = () => true): Promise<SuiteResult> {
    const start = performance.now();
    const notes = new Set(prepared.notes);
    const results = new Map<number, CaseResult>();
    for (const { policy, refusal, questions } of prepared.variants) {
      const wanted = questions.flatMap((question) => {
        const one = prepared.cases[question.index];
        return one !== undefined && isWanted(one.test) ? [{ question, one }] : [];
      });
      const problem = wanted.length === 0 ? undefined : await this.#load(policy, refusal, notes);
      for (const { question, one } of wanted) {
        const caseStart = performance.now();
        const answer = problem ?? (await this.#ask(question));
        results.set(question.index, this.#result(one, question, answer, performance.now() - caseStart));
      }
    }
    const cases = [...results].sort(([a], [b]) => a - b).map(([, result]) => result);
    return {
      name: prepared.suite.name,
      file: prepared.suite.file,
      cases,
      skipped: prepared.cases.length - cases.length,
      notes: [...notes],
      warnings: prepared.warnings,
      durationMs: performance.now() - start,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#policies[Symbol.asyncDispose]();
  }

  /** Loads the policy. If that fails, returns the answer to all questions. */
  async #load(
    policy: RunnablePolicy,
    refusal: string | undefined,
    notes: Set<string>,
  ): Promise<SuiteAnswer | undefined> {
    if (refusal !== undefined) {
      return { kind: 'failed', message: refusal };
    }
    this.#policies.capabilities.begin(undefined);
    try {
      (await this.#policies.load(policy)).forEach((note) => notes.add(note));
      return undefined;
    } catch (error) {
      return error instanceof SettingsRefusal
        ? { kind: 'settings-rejected', message: error.reason }
        : { kind: 'failed', message: errorText(error) };
    }
  }

  async #ask({ request, session, match }: SuiteQuestion): Promise<SuiteAnswer> {
    if (request === undefined) {
      return { kind: 'settings-accepted' };
    }
    const { result, reason = '' } = match ?? {};
    if (result !== undefined && 'error' in result) {
      return { kind: 'failed', message: `the policy gave no verdict: ${reason}` };
    }
    if (result?.isMatch === false) {
      return { kind: 'unmatched', reason };
    }
    const { capabilities } = this.#policies;
    try {
      capabilities.begin(session);
      const evaluated = await this.#policies.evaluate(request);
      if (evaluated.refused !== undefined) {
        return { kind: 'failed', message: evaluated.refused };
      }
      const unanswered = [...capabilities.withoutCluster, ...capabilities.notRecorded];
      if (unanswered.length > 0) {
        const message = `the recorded session does not answer these host calls of the policy: ${unanswered.join(', ')}`;
        return { kind: 'failed', message };
      }
      const verdict = verdictOf(evaluated.response);
      const { observation } = evaluated;
      if (isVerdict(observation)) {
        return { kind: 'verdict', verdict };
      }
      return observation.outcome === 'timeout'
        ? { kind: 'failed', message: 'the policy gave no verdict in time' }
        : { kind: 'failed', message: `the policy gave no verdict: ${verdict.message ?? ''}` };
    } catch (error) {
      return { kind: 'failed', message: errorText(error) };
    }
  }

  #result(prepared: PreparedCase, { match }: SuiteQuestion, answer: SuiteAnswer, durationMs: number): CaseResult {
    const mismatches = compareAnswer(prepared, answer, match);
    const log = this.#log;
    this.#log = [];
    return {
      test: prepared.test,
      status: answer.kind === 'failed' ? 'error' : mismatches.length > 0 ? 'failed' : 'passed',
      mismatches,
      ...(answer.kind === 'failed' ? { error: answer.message } : {}),
      ...(answer.kind === 'verdict' ? { verdict: answer.verdict } : {}),
      log,
      durationMs,
    };
  }
}

function compareAnswer(
  { expect, object, withDefaults }: PreparedCase,
  answer: SuiteAnswer,
  match: RequestMatch | undefined,
): readonly Mismatch[] {
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
    case 'unmatched':
      return expect.matched === false
        ? compareReason(expect, answer.reason)
        : [{ field: 'matched', expected: 'true', actual: `false: ${answer.reason}` }];
    case 'verdict':
      return expect.matched === false
        ? [{ field: 'matched', expected: 'false', actual: 'true' }]
        : [...compareMatch(expect.matched, match), ...compareVerdict(expect, answer.verdict, object, withDefaults)];
    default:
      return answer satisfies never;
  }
}

/** Why the policy does not match, if the case says it. */
function compareReason({ message }: PreparedCase['expect'], reason: string): readonly Mismatch[] {
  return message === undefined ? [] : compareText('message', message, reason);
}

/** A match that is expected must be known, and not taken for granted. */
function compareMatch(expected: boolean | undefined, match: RequestMatch | undefined): readonly Mismatch[] {
  const isUnknown = expected === true && match !== undefined && match.notes.length > 0;
  return isUnknown ? [{ field: 'matched', expected: 'true', actual: `unknown: ${match.notes.join(', ')}` }] : [];
}
