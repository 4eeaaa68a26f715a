// Carries out the plan of an object: dry run, then write.
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type Cluster, isNotFound, unlessGone } from '../../../cluster/index.ts';
import { keyText, type KubernetesObject, type ObjectKey } from '../../../resources/index.ts';
import { Waiting } from '../../../runtime/index.ts';
import { errorText } from '../../../values/index.ts';
import {
  afterDryRun,
  afterWrite,
  type DryRunOutcome,
  isUnchanged,
  type ObjectPlan,
  type WriteOutcome,
} from '../../configuration/index.ts';
import { typeKey } from '../../objects/kind-mappings.ts';
import type { ContestedObjects } from './contested-objects.ts';
import { GOVERNANCE_FIELD_MANAGER } from './field-manager.ts';
import type { Creation, ObjectCreations } from './object-creations.ts';

/** Reads of a deleted object until it is gone, and the interval between them, as upstream. */
const GONE_TRIES = 3;
const GONE_INTERVAL_MS = 1_000;

/** A dry run whose answer is still valid. */
interface KnownDryRun {
  readonly resourceVersion: string;
  readonly digest: string;
  readonly outcome: DryRunOutcome;
}

/** Answers of dry runs of one policy, for objects that have not changed since. */
export class KnownDryRuns {
  #known = new Map<string, KnownDryRun>();
  #used = new Map<string, KnownDryRun>();

  get(id: string, live: KubernetesObject, digest: string): DryRunOutcome | undefined {
    const known = this.#known.get(id);
    const isValid =
      known !== undefined && known.resourceVersion === live.metadata.resourceVersion && known.digest === digest;
    if (isValid) {
      this.#used.set(id, known);
    }
    return isValid ? known.outcome : undefined;
  }

  set(id: string, live: KubernetesObject, digest: string, outcome: DryRunOutcome): void {
    const known = { resourceVersion: live.metadata.resourceVersion ?? '', digest, outcome };
    this.#known.set(id, known);
    this.#used.set(id, known);
  }

  /** Removes answers that the last evaluation did not use. */
  sweep(): void {
    this.#known = this.#used;
    this.#used = new Map();
  }
}

export interface ObjectWriterOptions {
  /** The cluster as the governance account. */
  readonly governed: Cluster;
  readonly contested: ContestedObjects;
  /** The policy, for messages: `namespace/name`. */
  readonly policy: string;
  readonly creations: Pick<ObjectCreations, 'of'>;
  readonly dryRuns: KnownDryRuns;
}

/** The plan of an object after its dry run and its write. */
export interface WrittenObject {
  readonly plan: ObjectPlan;
  /** Delay before the next evaluation if no object changes. Milliseconds. */
  readonly retryAfterMs?: number;
  /** The policy that alternately changes the object. */
  readonly rival?: string;
}

export class ObjectWriter {
  readonly #options: ObjectWriterOptions;

  constructor(options: ObjectWriterOptions) {
    this.#options = options;
  }

  /** Sends the dry run if the plan needs one, then writes what the policy enforces. */
  async carryOut(plan: ObjectPlan, signal: AbortSignal): Promise<WrittenObject> {
    const tried = await this.#try(plan, signal);
    const key = keyOfPlan(tried);
    const { contested, policy } = this.#options;
    if (tried.action.type === 'none') {
      const isRefused = plan.dryRun !== undefined && tried.verdict === 'failed';
      return { plan: tried, ...(isRefused ? { retryAfterMs: RETRY_MS } : this.#fight(tried, key)) };
    }
    if (tried.action.type === 'delete' && tried.live?.metadata.deletionTimestamp !== undefined) {
      // Another request would change nothing, and the object is still there.
      return { plan: afterWrite(tried, { type: 'failed', message: TERMINATING }) };
    }
    const contest = contested.contest(tried.type, key, policy, Date.now());
    if (contest !== undefined) {
      return {
        plan: afterWrite(tried, { type: 'failed', message: contestedText(policy, contest.with) }),
        retryAfterMs: contest.until - Date.now(),
        rival: contest.with,
      };
    }
    return await this.#write(tried, key, signal);
  }

  /** The contest over an object, until the other policy has had time to continue it. */
  #fight({ type, settings }: ObjectPlan, key: ObjectKey): Pick<WrittenObject, 'rival' | 'retryAfterMs'> {
    const { contested, policy } = this.#options;
    const now = Date.now();
    const fight = settings.isEnforced ? contested.fight(type, key, policy, now) : undefined;
    return fight === undefined ? {} : { rival: fight.with, retryAfterMs: fight.until - now };
  }

  async #try(plan: ObjectPlan, signal: AbortSignal): Promise<ObjectPlan> {
    const { dryRun, live } = plan;
    if (dryRun === undefined || live === undefined) {
      return plan;
    }
    const { dryRuns } = this.#options;
    const id = `${typeKey(plan.type)} ${keyText(keyOfPlan(plan))}`;
    const digest = createHash('sha256').update(JSON.stringify(dryRun)).digest('base64');
    const known = dryRuns.get(id, live, digest);
    const outcome = known ?? (await this.#dryRun(plan, dryRun, live, signal));
    if (outcome.type !== 'failed') {
      dryRuns.set(id, live, digest, outcome);
    }
    return afterDryRun(plan, outcome);
  }

  async #dryRun(
    plan: ObjectPlan,
    object: KubernetesObject,
    live: KubernetesObject,
    signal: AbortSignal,
  ): Promise<DryRunOutcome> {
    const options = {
      dryRun: true,
      fieldManager: GOVERNANCE_FIELD_MANAGER,
      fieldValidation: 'Strict',
      signal,
    } as const;
    try {
      const updated = await this.#options.governed.update(plan.type, object, options);
      return isUnchanged(live, updated) ? { type: 'unchanged' } : { type: 'changed', object: updated };
    } catch (error) {
      if (!(error instanceof ApiError)) {
        throw error;
      }
      if (error.code === 403 && !plan.settings.isEnforced) {
        // An account that only reads can still compare.
        return { type: 'unavailable' };
      }
      if (isOutdated(error)) {
        throw error;
      }
      return error.reason === 'Invalid'
        ? { type: 'invalid' }
        : { type: 'failed', message: answerText(error, plan), isNotFound: isNotFound(error) };
    }
  }

  async #write(plan: ObjectPlan, key: ObjectKey, signal: AbortSignal): Promise<WrittenObject> {
    try {
      const outcome = await this.#act(plan, key, signal);
      const { contested, policy } = this.#options;
      if (outcome.type === 'timeout') {
        return { plan: afterWrite(plan, outcome), retryAfterMs: GONE_INTERVAL_MS };
      }
      contested.record(plan.type, key, policy, Date.now());
      return { plan: afterWrite(plan, outcome), ...this.#fight(plan, key) };
    } catch (error) {
      if (error instanceof Waiting) {
        return { plan: afterWrite(plan, { type: 'failed', message: error.message }), retryAfterMs: error.afterMs };
      }
      if (!(error instanceof ApiError) || isOutdated(error)) {
        throw error;
      }
      const outcome = { type: 'failed', message: answerText(error, plan), isNotFound: isNotFound(error) } as const;
      return { plan: afterWrite(plan, outcome), retryAfterMs: RETRY_MS };
    }
  }

  async #act(plan: ObjectPlan, key: ObjectKey, signal: AbortSignal): Promise<WriteOutcome> {
    const { type, action, live } = plan;
    const { governed } = this.#options;
    const options = { fieldManager: GOVERNANCE_FIELD_MANAGER, fieldValidation: 'Strict', signal } as const;
    switch (action.type) {
      case 'none':
        return { type: 'written' };
      case 'create':
        return await this.#create(plan, action.object, await this.#options.creations.of(plan), signal);
      case 'update':
        return written(await governed.update(type, action.object, options));
      case 'delete':
        await unlessGone(governed.delete(type, key, { signal }));
        return { type: 'written' };
      case 'recreate': {
        const creation = await this.#options.creations.of(plan);
        const uid = live?.metadata.uid;
        const preconditions = uid === undefined ? {} : { preconditions: { uid } };
        await unlessGone(governed.delete(type, key, { ...preconditions, signal }));
        if (!(await this.#isGone({ type, key, uid, signal }))) {
          return { type: 'timeout' };
        }
        return await this.#create(plan, action.object, creation, signal);
      }
      default:
        return action satisfies never;
    }
  }

  async #create(
    { type }: ObjectPlan,
    object: KubernetesObject,
    { fieldManager, createdByPolicy }: Creation,
    signal: AbortSignal,
  ): Promise<WriteOutcome> {
    const created = await this.#options.governed.create(type, object, {
      fieldManager,
      fieldValidation: 'Strict',
      signal,
    });
    return { ...written(created), createdByPolicy };
  }

  async #isGone({ type, key, uid, signal }: Pick<ObjectPlan, 'type'> & GoneObject): Promise<boolean> {
    for (let tries = 0; tries < GONE_TRIES; tries += 1) {
      const left = await unlessGone(this.#options.governed.get(type, key, { signal }));
      if (left === undefined || left.metadata.uid !== uid) {
        return true;
      }
      await sleep(GONE_INTERVAL_MS, undefined, { signal });
    }
    return false;
  }
}

/**
 * Answers that name the resource, the object and the user only: that of RBAC, and that something is not there. All others may
 * quote values: webhooks choose the code and the text.
 */
const ANSWERS_OF_NAMES =
  /^\S+ (?:"[^"\s]*" )?(?:not found$|is forbidden: User "[^"\s]*" cannot [a-z]+ resource "[^"\s]*")/;

/** The message of an API server, without values of Secrets. */
function answerText(error: ApiError, { settings }: ObjectPlan): string {
  const text = errorText(error);
  return settings.isSensitive && !ANSWERS_OF_NAMES.test(text)
    ? `${error.reason}: the message is redacted, because the template reads Secrets`
    : text;
}

/** Why an object that is already being deleted is not deleted again. */
const TERMINATING = 'it is being deleted, and a finalizer or a grace period holds it';

/** Whether the object has changed since it was read, or the server has too many requests: the next evaluation tries again. */
function isOutdated({ code }: ApiError): boolean {
  return code === 409 || code === 429;
}

/** Delay before a refused write is tried again: an administrator may have granted the right. Milliseconds. */
const RETRY_MS = 30_000;

interface GoneObject {
  readonly key: ObjectKey;
  readonly uid: string | undefined;
  readonly signal: AbortSignal;
}

function written({ metadata }: KubernetesObject): Extract<WriteOutcome, { type: 'written' }> {
  return { type: 'written', ...(metadata.uid === undefined ? {} : { uid: metadata.uid }) };
}

function keyOfPlan({ namespace, name }: ObjectPlan): ObjectKey {
  return namespace === '' ? { name } : { namespace, name };
}

function contestedText(policy: string, rival: string): string {
  return `ConfigurationPolicy ${policy} and ConfigurationPolicy ${rival} change this object in turn: let only one of them enforce it`;
}
