import { ApiError } from '../../cluster/index.ts';
import { RequestRefusal } from '../../https/index.ts';
import type { Logger } from '../../log/index.ts';
import {
  DEFAULT_POLICY_SERVER,
  type JsonObject,
  own,
  OWN_KINDS,
  POLICIES_GROUP,
  textOf,
} from '../../resources/index.ts';
import { JobThread, ThreadError } from '../../threads/index.ts';
import { Findings } from './findings.ts';
import { objectAt, type OwnKindsReview } from './own-kinds-review.ts';
import type { OwnKindsRulesOptions, RulesVerdict } from './own-kinds-rules.ts';

/** Time to validate one policy: half of the webhook's timeout. The largest that API servers accept take a second or two. */
const DEADLINE_MS = 5_000;
/** Memory of the thread, for an object of 3 MB with its syntax trees. */
const HEAP_MB = 256;

/** What the rules need to know of a PolicyServer; see {@link OwnKindsRulesOptions}. */
export interface PolicyServerFacts {
  readonly hosts?: readonly string[] | undefined;
  readonly modules?: readonly string[] | undefined;
  readonly capabilities?: readonly string[] | undefined;
  readonly kubewardenFinalizer?: string | undefined;
}

/** Given to the thread when it starts. */
export type RulesStart = Pick<OwnKindsRulesOptions, 'controllerUser' | 'settingsCheck' | 'appliesVerification'> & {
  readonly modulesUrl: string | undefined;
};

/** To the thread: a review, and facts by the names of the PolicyServers in it. */
export interface RulesJob {
  readonly review: OwnKindsReview;
  readonly facts: Readonly<Record<string, PolicyServerFacts>>;
}

/** From the thread: a verdict, or why there is none. Classes do not pass between threads. */
export type RulesAnswer =
  | (Omit<RulesVerdict, 'error'> & { readonly error?: Pick<ApiError, 'code' | 'reason' | 'message' | 'details'> })
  | { readonly failure: string };

/**
 * Validates policies in a thread of their own: expressions and patterns that users wrote are compiled there, and a policy that
 * takes too long holds nothing else of the controller.
 */
export class PolicyReviews {
  readonly #options: OwnKindsRulesOptions;
  readonly #thread: JobThread<RulesJob, RulesAnswer>;

  /** @param deadlineMs time for one policy; default: {@link DEADLINE_MS} */
  constructor(options: OwnKindsRulesOptions, log: Logger, deadlineMs: number = DEADLINE_MS) {
    this.#options = options;
    const { controllerUser, settingsCheck, appliesVerification, modulesUrl } = options;
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    this.#thread = new JobThread({
      module: new URL(`./rules-thread.${extension}`, import.meta.url),
      name: 'policy reviews',
      workerData: { controllerUser, settingsCheck, appliesVerification, modulesUrl: modulesUrl?.href },
      deadlineMs,
      heapMb: HEAP_MB,
      log,
    });
  }

  /**
   * @param owner whose reviews wait for each other: a namespace, or an address
   * @param by whether what PolicyServers allow counts. Default: it does
   * @throws RequestRefusal 503 when the process stops
   */
  async validate(
    review: OwnKindsReview,
    owner: string,
    by: 'object and servers' | 'object alone' = 'object and servers',
  ): Promise<RulesVerdict> {
    try {
      const facts = by === 'object alone' ? {} : this.#factsOf(review);
      const answer = await this.#thread.run({ review, facts }, owner);
      if ('failure' in answer) {
        throw new Error(answer.failure);
      }
      const { error, ...verdict } = answer;
      if (error === undefined) {
        return verdict;
      }
      const { code, reason, message, details } = error;
      return { ...verdict, error: new ApiError(code, reason, message, details) };
    } catch (error) {
      if (!(error instanceof ThreadError)) {
        throw error;
      }
      return { error: costError(review, error.code), warnings: [] };
    }
  }

  stop(): void {
    this.#thread.stop();
  }

  #factsOf({ object, oldObject }: OwnKindsReview): RulesJob['facts'] {
    const { tenantHosts, tenantModules, tenantCapabilities, kubewardenFinalizer } = this.#options;
    const names = [object, oldObject].map((one) => policyServerOf(one));
    return Object.fromEntries(
      names.map((name) => [
        name,
        {
          hosts: tenantHosts?.(name),
          modules: tenantModules?.(name),
          capabilities: tenantCapabilities?.(name),
          kubewardenFinalizer: kubewardenFinalizer?.(name),
        },
      ]),
    );
  }
}

/** Whether a review is of a policy or a PolicyServer itself. */
export function isOfPolicies({ group, subresource }: OwnKindsReview): boolean {
  return group === POLICIES_GROUP && subresource === '';
}

/** The PolicyServer that a policy names. */
function policyServerOf(object: JsonObject | undefined): string {
  return textOf(own(objectAt(object ?? {}, 'spec') ?? {}, 'policyServer')) || DEFAULT_POLICY_SERVER;
}

function costError({ group, kind, name }: OwnKindsReview, code: ThreadError['code']): ApiError {
  if (code === 'stopped') {
    throw new RequestRefusal(503, 'the controller is stopping; try again');
  }
  const cost = code === 'deadline' ? `more than ${DEADLINE_MS / 1000} s` : 'too much memory';
  const findings = new Findings();
  const message = `it takes ${cost} to check: use fewer or simpler expressions and patterns, or split the policy`;
  findings.reject('too-costly', { reason: 'FieldValueInvalid', field: 'spec', message });
  const known = OWN_KINDS.find((one) => one.group === group && one.kind === kind) ?? { group, kind };
  return ApiError.invalid(known, name, findings.errors);
}
