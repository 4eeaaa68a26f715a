// Judges the objects of a kind, page by page.
import { ApiError } from '../cluster/index.ts';
import type { ObjectVerdict } from '../engine/index.ts';
import { apiVersionOf, type KubernetesObject } from '../resources/index.ts';
import { auditedObject, auditResult, type AuditResult, resultOf } from './audit-result.ts';
import { type Coverage, type Counts, failedList, NO_COUNTS } from './coverage.ts';
import { createdObject } from './created-object.ts';
import type { KindListing, KindPolicy } from './plan-audit.ts';
import type { SharedVerdicts } from './shared-verdicts.ts';

/** Objects of a kind that were read together. */
export interface ObjectPage {
  readonly items: readonly KubernetesObject[];
  /** Objects that are still to be read, if known. */
  readonly remaining?: number;
}

/** What was found about one kind, or about all kinds of some policies. */
export interface AuditPart {
  readonly coverage: readonly Coverage[];
  readonly results: readonly AuditResult[];
}

export interface AuditProgress {
  readonly listing: KindListing;
  readonly judged: number;
  readonly remaining?: number;
}

/** What an audit runs with. */
export interface AuditRun {
  /** Gives the verdicts of the policies. */
  readonly verdicts: Pick<SharedVerdicts, 'of'>;
  readonly signal?: AbortSignal;
  /** Called when a list starts, and after each page. */
  readonly onProgress?: (progress: AuditProgress) => void;
  /** Milliseconds since 1970. Default: the system's clock. */
  readonly now?: () => number;
}

/** Objects that are judged at once: some for each worker of a large machine, and far fewer than a pool holds. */
const MAX_UNDER_WAY = 64;
/** Lists of a kind whose next page was gone. A list is kept for five minutes, so that the next one would most likely end the same. */
const MAX_LISTS = 3;
/** Errors of a policy with objects of a kind that are shown. All are counted. */
const MAX_ERRORS = 10;
const EXPIRED = 410;

/**
 * Judges all objects of a kind.
 * @param pages lists the kind from the start
 */
export async function auditKind(
  listing: KindListing,
  pages: () => AsyncIterable<ObjectPage>,
  run: AuditRun,
): Promise<AuditPart> {
  for (let lists = 1; ; lists += 1) {
    const tally = new KindTally(listing);
    const failure = await judgePages(tally, pages(), run);
    const isExpired = failure instanceof ApiError && failure.code === EXPIRED;
    // Starts anew with nothing, so that no object has two findings.
    if (!isExpired || lists === MAX_LISTS) {
      return tally.result(failure, run.now?.() ?? Date.now());
    }
  }
}

/** Returns what ended the list before its end. */
async function judgePages(tally: KindTally, pages: AsyncIterable<ObjectPage>, run: AuditRun): Promise<unknown> {
  const { signal, onProgress } = run;
  onProgress?.({ listing: tally.listing, judged: 0 });
  const iterator = pages[Symbol.asyncIterator]();
  try {
    let next = iterator.next();
    for (let page = await next; page.done !== true; page = await next) {
      // Read while this page is judged. Whether it fails is asked later.
      next = iterator.next();
      next.catch(() => undefined);
      await judgeAll(tally, page.value.items, run);
      signal?.throwIfAborted();
      const { remaining } = page.value;
      onProgress?.({
        listing: tally.listing,
        judged: tally.scanned,
        ...(remaining === undefined ? {} : { remaining }),
      });
    }
    return undefined;
  } catch (error) {
    signal?.throwIfAborted();
    return error;
  }
}

/** Several at once, each by one policy after the other. */
async function judgeAll(tally: KindTally, objects: readonly KubernetesObject[], run: AuditRun): Promise<void> {
  const open = objects[Symbol.iterator]();
  const judgeSome = async (): Promise<void> => {
    for (const object of open) {
      run.signal?.throwIfAborted();
      await judge(tally, object, run);
    }
  };
  await Promise.all(Array.from({ length: MAX_UNDER_WAY }, judgeSome));
}

async function judge(tally: KindTally, object: KubernetesObject, { verdicts }: AuditRun): Promise<void> {
  const { type } = tally.listing;
  const policies = tally.policiesFor(object.metadata.namespace);
  const ids = policies.map(({ id }) => id);
  tally.add(object, policies, await verdicts.of(createdObject(object, type), type, ids));
}

/** Counts and results of the objects of a kind. */
class KindTally {
  readonly listing: KindListing;
  scanned = 0;
  readonly #everywhere: readonly KindPolicy[];
  readonly #byNamespace: ReadonlyMap<string | undefined, readonly KindPolicy[]>;
  readonly #counts = new Map<string, { -readonly [Key in keyof Counts]: Counts[Key] }>();
  readonly #results: AuditResult[] = [];

  constructor(listing: KindListing) {
    this.listing = listing;
    this.#byNamespace = Map.groupBy(listing.policies, ({ namespace }) => namespace);
    this.#everywhere = this.#byNamespace.get(undefined) ?? [];
    for (const { id } of listing.policies) {
      this.#counts.set(id, { ...NO_COUNTS });
    }
  }

  /** The policies that may be for objects of a namespace. */
  policiesFor(namespace: string | undefined): readonly KindPolicy[] {
    const own = namespace === undefined ? undefined : this.#byNamespace.get(namespace);
    return own === undefined ? this.#everywhere : [...this.#everywhere, ...own];
  }

  add(object: KubernetesObject, policies: readonly KindPolicy[], verdicts: readonly ObjectVerdict[]): void {
    this.scanned += 1;
    for (const { id, name } of policies) {
      const counts = this.#counts.get(id);
      if (counts === undefined) {
        continue;
      }
      counts.scanned += 1;
      // None: the policy was removed while the object was judged.
      const verdict = verdicts.find(({ policy }) => policy === id);
      const result = verdict === undefined ? 'error' : resultOf(verdict);
      countResult(counts, result);
      if (
        verdict !== undefined &&
        result !== 'unmatched' &&
        result !== 'pass' &&
        (result !== 'error' || counts.unjudged <= MAX_ERRORS)
      ) {
        const { type } = this.listing;
        this.#results.push(auditResult(name, verdict, result, auditedObject(object, apiVersionOf(type), type.kind)));
      }
    }
  }

  /** @param failure what ended the list before its end; undefined: nothing */
  result(failure: unknown, now: number): AuditPart {
    const { policies } = this.listing;
    return { coverage: policies.map((policy) => this.#coverage(policy, failure, now)), results: this.#results };
  }

  #coverage({ id, name, namespace: own, assumes }: KindPolicy, failure: unknown, now: number): Coverage {
    const { type, namespace = own } = this.listing;
    const counts = this.#counts.get(id) ?? NO_COUNTS;
    return {
      policy: name,
      kind: kindOnly(type),
      ...(namespace === undefined ? {} : { namespace }),
      ...stateOf(counts, failure === undefined ? undefined : failedList(failure, type), this.scanned),
      ...(assumes === undefined ? {} : { assumes }),
      counts,
      ...(this.scanned === 0 && failure !== undefined ? {} : { scannedAt: new Date(now).toISOString() }),
    };
  }
}

function countResult(
  counts: { -readonly [Key in keyof Counts]: Counts[Key] },
  result: ReturnType<typeof resultOf>,
): void {
  if (result === 'unmatched') {
    return;
  }
  counts.matched += 1;
  switch (result) {
    case 'pass':
      counts.passed += 1;
      break;
    case 'fail':
      counts.failed += 1;
      break;
    case 'wouldChange':
      counts.wouldChange += 1;
      break;
    case 'skip':
      counts.skipped += 1;
      break;
    default:
      counts.unjudged += 1;
  }
}

function stateOf(
  { unjudged, matched }: Counts,
  failed: ReturnType<typeof failedList> | undefined,
  scanned: number,
): Pick<Coverage, 'state' | 'reason' | 'message' | 'missingRule'> {
  if (failed !== undefined) {
    const after = `the list ended after ${scanned} objects: ${failed.message ?? ''}`;
    return scanned === 0 ? failed : { ...failed, state: 'Partial', message: after };
  }
  return unjudged === 0
    ? { state: 'Scanned' }
    : {
        state: 'Partial',
        reason: 'NotJudged',
        message: `the policy gave no verdict on ${unjudged} of ${matched} objects`,
      };
}

function kindOnly({ group, version, resource, kind, namespaced }: KindListing['type']): NonNullable<Coverage['kind']> {
  return { group, version, resource, kind, namespaced };
}
