// Evaluates policies on resources, in the order of an API server: mutating policies first.
import type { JsonObject, JsonValue, PolicyDefinition, Verdict } from '../../../engine/index.ts';
import type { PolicyLogEntry } from '../../../engine/capabilities/index.ts';
import { verdictOf } from '../../../evaluation/index.ts';
import { errorText, exactJson, isJsonObject, own, textOf } from '../../../values/index.ts';
import type { FilePolicy } from '../../policy/file-policy.ts';
import { errorsText } from '../../policy/policy-findings.ts';
import { messageWarning } from '../../policy/message-problems.ts';
import { type PolicyWarning, warningText } from '../../policy/policy-warning.ts';
import { matchRequest } from '../../policy/match-request.ts';
import { isVerdict, type PolicyRunner, type RunnablePolicy } from '../../policy/policy-runner.ts';
import type { Progress } from '../../progress.ts';
import { patched, patchOf } from '../suites/patched.ts';
import type { Resource } from './read-resources.ts';
import type { UnusablePolicy, PolicyResult, ResourceReport, ResourceResult } from './resource-report.ts';
import { UncheckedMatches } from './unchecked-matches.ts';

/** Most log lines of a policy that are kept for one result. */
const MAX_LOG_LINES = 20;

/** A resource with its request. */
export interface TestedResource {
  readonly resource: Resource;
  /** `Deployment shop/web` */
  readonly text: string;
  /** An AdmissionReview. */
  readonly review: JsonObject;
  /** An object that a policy has changed, with the defaults that API servers set again. */
  readonly withDefaults: (object: JsonObject) => JsonObject;
}

export interface ResourceRunnerOptions {
  readonly progress: Progress;
  /** The code of a policy, with the timeout of its evaluations. @throws when it cannot be read */
  readonly codeOf: (policy: FilePolicy) => Promise<RunnablePolicy>;
  /** Whether results of a policy on a resource are wanted. */
  readonly isWanted: (resource: string, policy: string) => boolean;
  /** Text of a recorded session that answers host capabilities. */
  readonly session: string | undefined;
}

/** Evaluates policies on subjects. Never throws: errors are results. */
export async function testResources(
  policies: readonly FilePolicy[],
  subjects: readonly TestedResource[],
  runner: PolicyRunner,
  log: LogLines,
  options: ResourceRunnerOptions,
): Promise<ResourceReport> {
  const start = performance.now();
  const states = subjects.map((subject) => new SubjectState(subject));
  const problems: UnusablePolicy[] = [];
  const notes: string[] = [];
  const warnings = new Map<string, PolicyWarning>();
  const unchecked = new UncheckedMatches();
  const ordered = [...policies.filter(isMutating), ...policies.filter((policy) => !isMutating(policy))];
  for (const [index, policy] of ordered.entries()) {
    const label = `testing ${policy.name} (${index + 1} of ${ordered.length})`;
    const test = new PolicyTest(policy, runner, log, unchecked, options);
    const problem = await options.progress.during(label, () => test.run(states));
    problems.push(...(problem === undefined ? [] : [problem]));
    notes.push(...test.notes);
    test.warnings.forEach((warning) => warnings.set(warningText(warning), warning));
  }
  return {
    policies,
    problems,
    resources: states.map((state) => state.result(policies)),
    warnings: [...warnings.values()],
    notes: [...notes, ...unchecked.notes()],
    durationMs: performance.now() - start,
  };
}

/** Lines that policies log, as they come. */
export class LogLines {
  #lines: PolicyLogEntry[] = [];

  readonly add = (entry: PolicyLogEntry): void => {
    if (this.#lines.length < MAX_LOG_LINES) {
      this.#lines.push(entry);
    }
  };

  /** The lines since the last call. */
  take(): readonly PolicyLogEntry[] {
    const lines = this.#lines;
    this.#lines = [];
    return lines;
  }
}

/** A policy that API servers call in their mutating phase. */
function isMutating({ kind, definition }: FilePolicy): boolean {
  return kind === 'ValidatingAdmissionPolicy' || kind === 'MutatingAdmissionPolicy'
    ? kind === 'MutatingAdmissionPolicy'
    : definition.kind === 'policy' && definition.allowedToMutate;
}

/** A subject while policies are evaluated one after the other. */
class SubjectState {
  readonly text: string;
  readonly #resource: Resource;
  readonly #request: JsonObject;
  readonly #review: JsonObject;
  readonly #before: JsonValue;
  readonly #withDefaults: TestedResource['withDefaults'];
  readonly #results = new Map<FilePolicy, PolicyResult>();
  #object: JsonValue;
  #body: Uint8Array | undefined;

  constructor({ resource, text, review, withDefaults }: TestedResource) {
    const request = own(review, 'request');
    this.text = text;
    this.#resource = resource;
    this.#review = review;
    this.#withDefaults = withDefaults;
    this.#request = isJsonObject(request) ? request : {};
    this.#before = own(this.#request, 'object') ?? null;
    this.#object = this.#before;
  }

  /** The review with the object as mutating policies left it. */
  get body(): Uint8Array {
    this.#body ??= Buffer.from(exactJson({ ...this.#review, request: { ...this.#request, object: this.#object } }));
    return this.#body;
  }

  get namespace(): string {
    return textOf(own(this.#request, 'namespace'));
  }

  add(result: PolicyResult): void {
    this.#results.set(result.policy, result);
  }

  /** Whether the patch of a verdict changed the object. @throws PatchError when it cannot be applied */
  mutate(verdict: Verdict): boolean {
    const operations = patchOf(verdict);
    if (operations.length === 0) {
      return false;
    }
    const object = patched(this.#object, operations);
    this.#object = isJsonObject(object) ? this.#withDefaults(object) : object;
    this.#body = undefined;
    return true;
  }

  /** @param policies in the order of their results */
  result(policies: readonly FilePolicy[]): ResourceResult {
    return {
      resource: this.#resource,
      text: this.text,
      results: policies.flatMap((policy) => this.#results.get(policy) ?? []),
      before: this.#before,
      after: this.#object,
    };
  }
}

/** One policy on all subjects. */
class PolicyTest {
  readonly notes: string[] = [];
  /** About the policy, found while it ran. */
  readonly warnings: PolicyWarning[] = [];
  readonly #policy: FilePolicy;
  readonly #runner: PolicyRunner;
  readonly #log: LogLines;
  readonly #unchecked: UncheckedMatches;
  readonly #options: ResourceRunnerOptions;

  constructor(
    policy: FilePolicy,
    runner: PolicyRunner,
    log: LogLines,
    unchecked: UncheckedMatches,
    options: ResourceRunnerOptions,
  ) {
    this.#policy = policy;
    this.#runner = runner;
    this.#log = log;
    this.#unchecked = unchecked;
    this.#options = options;
  }

  /** Adds the results to the subjects; without any when the policy cannot be evaluated. */
  async run(states: readonly SubjectState[]): Promise<UnusablePolicy | undefined> {
    const problem = await this.#load();
    if (problem !== undefined) {
      return problem;
    }
    for (const state of states) {
      if (this.#options.isWanted(state.text, this.#policy.name)) {
        state.add(await this.#result(state));
      }
    }
    return undefined;
  }

  async #load(): Promise<UnusablePolicy | undefined> {
    const policy = this.#policy;
    const { errors } = policy.findings();
    if (errors.length > 0) {
      return { policy, message: errorsText(errors), isUnreadable: false };
    }
    let code: RunnablePolicy;
    try {
      code = await this.#options.codeOf(policy);
    } catch (error) {
      return { policy, message: errorText(error), isUnreadable: true };
    }
    this.#runner.capabilities.begin(this.#options.session);
    try {
      const notes = await this.#runner.load({ ...code, definition: enforced(code.definition) });
      this.notes.push(...notes.map((note) => `${policy.name}: ${note}`));
      return undefined;
    } catch (error) {
      return { policy, message: errorText(error), isUnreadable: false };
    } finally {
      this.#log.take();
    }
  }

  async #result(state: SubjectState): Promise<PolicyResult> {
    const start = performance.now();
    const partial = await this.#evaluate(state);
    const lines = this.#log.take();
    const warnings = lines.map((line) => messageWarning(this.#policy, line));
    this.warnings.push(...warnings.filter((warning) => warning !== undefined));
    return {
      policy: this.#policy,
      isMutated: false,
      warnings: [],
      auditAnnotations: {},
      ...partial,
      log: lines.filter((_line, index) => warnings[index] === undefined),
      durationMs: performance.now() - start,
    };
  }

  async #evaluate(state: SubjectState): Promise<PartialResult> {
    const request = { body: state.body, route: 'validate' } as const;
    const { capabilities } = this.#runner;
    try {
      const { result, reason = '' } = matchRequest(this.#policy, request);
      if ('error' in result) {
        return { outcome: 'error', message: reason };
      }
      if (!result.isMatch) {
        return { outcome: 'skip', message: reason };
      }
      this.#unchecked.add(this.#policy.name, result.unchecked, state.namespace);
      capabilities.begin(this.#options.session);
      const evaluated = await this.#runner.evaluate(request);
      if (evaluated.refused !== undefined) {
        return { outcome: 'error', message: evaluated.refused };
      }
      const unanswered = [...capabilities.withoutCluster, ...capabilities.notRecorded];
      if (unanswered.length > 0) {
        return {
          outcome: 'error',
          message: `no cluster answers these host calls of the policy: ${unanswered.join(', ')}`,
        };
      }
      const verdict = verdictOf(evaluated.response);
      if (isVerdict(evaluated.observation)) {
        return this.#ofVerdict(verdict, state);
      }
      const isLate = evaluated.observation.outcome === 'timeout';
      const why = isLate ? ' in time' : `: ${verdict.message ?? verdict.warnings?.join('; ') ?? ''}`;
      return { outcome: 'error', message: `the policy gave no verdict${why}` };
    } catch (error) {
      return { outcome: 'error', message: errorText(error) };
    }
  }

  /** @throws PatchError */
  #ofVerdict(verdict: Verdict, state: SubjectState): PartialResult {
    const warnings = verdict.warnings ?? [];
    const isMonitored = this.#policy.definition.mode === 'monitor';
    const said = {
      warnings,
      auditAnnotations: verdict.auditAnnotations ?? {},
      ...(verdict.code === undefined ? {} : { code: verdict.code }),
    };
    if (!verdict.allowed) {
      const message = messageOf(verdict);
      return isMonitored
        ? { ...said, outcome: 'warn', message: `in monitor mode: ${message}` }
        : { ...said, outcome: 'fail', message };
    }
    const isMutated = !isMonitored && state.mutate(verdict);
    return warnings.length > 0
      ? { ...said, outcome: 'warn', message: warnings.join('; '), isMutated }
      : { ...said, outcome: 'pass', isMutated };
  }
}

type PartialResult = Pick<PolicyResult, 'outcome' | 'message' | 'code'> & Partial<PolicyResult>;

/** A policy in monitor mode gives the verdict that it would enforce. */
function enforced(definition: PolicyDefinition): PolicyDefinition {
  return { ...definition, mode: 'protect' };
}

/** The message of a denial, with those of the members of a group. */
function messageOf({ message = 'denied without a message', causes = [] }: Verdict): string {
  const reasons = causes.flatMap(({ message: cause = '' }) => (cause === '' ? [] : [cause]));
  return reasons.length === 0 ? message : `${message}: ${reasons.join('; ')}`;
}
