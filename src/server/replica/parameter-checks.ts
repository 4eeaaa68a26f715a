// Checks the parameters of policies that serve whenever they change, so that their status names invalid ones.
import { isDeepStrictEqual } from 'node:util';
import { MAX_REFUSED_NAMESPACES, type RefusedReport } from '../../control/index.ts';
import type { PolicyDefinition } from '../../engine/index.ts';
import { moduleUses } from '../../engine/definition/index.ts';
import {
  type LoadOutcome,
  type LoadRequest,
  type ParameterTrial,
  type RefusedNamespace,
  type WatchedChange,
  type WatchedObject,
  WatchedObjects,
} from '../../evaluation/index.ts';
import { namespaceOfPolicyId } from '../../resources/index.ts';
import { hasKey } from './existing-parameters.ts';
import type { LastValidEntry, LastValidRecord } from './last-valid-record.ts';
import type { LoadedRevision } from '../policies/registry-entry.ts';

/** Delay after a change, so that one check and one status are for many. Milliseconds. */
export const CHECK_DELAY_MS = 2_000;

export interface ParameterChecksOptions {
  /** Versions of policies that serve. */
  readonly serving: () => Iterable<readonly [id: string, revision: LoadedRevision]>;
  readonly load: (
    requests: readonly LoadRequest[],
    done: (outcomes: ReadonlyMap<LoadRequest, LoadOutcome>) => void,
  ) => void;
  /** Called with the refused namespaces of a PolicyRevision, also unchanged ones; undefined: its parameters were tried, and there are none. */
  readonly checked: (revision: string, refused: RefusedReport | undefined) => void;
  /** Last valid parameters of before a restart, and for the next one. Default: none are kept. */
  readonly record?: Pick<LastValidRecord, 'read' | 'changed'>;
  /** Default: {@link CHECK_DELAY_MS}. */
  readonly delayMs?: number;
}

/** A version of a policy, and the namespaces that it is tried with. */
interface Trial {
  readonly revision: LoadedRevision;
  readonly namespaces: readonly string[];
}

/** What is known about one version of a policy. */
interface Checked {
  readonly version: string;
  /** Whether it uses the last valid parameters instead of invalid ones. */
  readonly keepsLast: boolean;
  /** Messages by refused namespace. */
  readonly refused: Map<string, string>;
  report: RefusedReport | undefined;
}

export class ParameterChecks {
  readonly #options: ParameterChecksOptions;
  readonly #objects = new WatchedObjects();
  /** Namespaces whose parameters have changed; all others were tried. */
  #changed = new Set<string>();
  /** Namespaces of the check that runs. */
  #trying = new Set<string>();
  /** Last valid parameters of before the restart, by reference, until their objects are read. */
  readonly #recorded: Map<string, LastValidEntry>;
  readonly #checked = new Map<string, Checked>();
  #timer: NodeJS.Timeout | undefined;
  /** One check at a time, so that no result of an older one counts. */
  #isChecking = false;
  #isDue = false;
  #isStopped = false;

  constructor(options: ParameterChecksOptions) {
    this.#options = options;
    this.#recorded = new Map((options.record?.read() ?? []).map((entry) => [textOf(entry[0]), entry]));
  }

  /** Takes a change. Returns it for workers: with the last valid parameters where those before the change are invalid. */
  apply(change: WatchedChange): WatchedChange {
    const completed = { ...change, objects: change.objects.map((one) => this.#withLastValid(change, one)) };
    this.#objects.apply(completed);
    if (change.isAll) {
      this.#forgetRecorded(change);
    }
    for (const [key] of change.objects) {
      this.#changed.add(namespaceOf(change, key));
    }
    this.schedule();
    return completed;
  }

  /** All objects that were taken. */
  objects(): readonly WatchedChange[] {
    return this.#objects.changes();
  }

  /** Checks soon, also because other policies serve. */
  schedule(): void {
    if (!this.#isStopped) {
      this.#timer ??= setTimeout(() => this.#check(), this.#options.delayMs ?? CHECK_DELAY_MS).unref();
    }
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Objects of the kind that were not read do not exist any more. */
  #forgetRecorded({ apiVersion, kind }: WatchedChange): void {
    for (const [text, [reference]] of this.#recorded) {
      if (reference.apiVersion === apiVersion && reference.kind === kind) {
        this.#recorded.delete(text);
      }
    }
  }

  /**
   * Workers that get no request between two changes know the last valid parameters only by this. While the parameters before the
   * change are not checked, those before them count as valid.
   */
  #withLastValid(change: WatchedChange, one: WatchedObject): WatchedObject {
    const [key, object, failure, previous] = one;
    const reference = { apiVersion: change.apiVersion, kind: change.kind, ...key };
    const [, recorded] = this.#recorded.get(textOf(reference)) ?? [];
    this.#recorded.delete(textOf(reference));
    if (previous !== undefined || (object === undefined && failure?.state !== 'unreadable')) {
      return one;
    }
    const last = this.#isValid(namespaceOf(change, key)) ? recorded : (this.#objects.previous(reference) ?? recorded);
    return last === undefined ? one : [key, object, failure, last];
  }

  /** Whether a policy uses the last valid parameters. */
  get #keepsLast(): boolean {
    return [...this.#checked.values()].some(({ keepsLast }) => keepsLast);
  }

  /** Whether the last known parameters of a namespace are valid for policies with `KeepLast`. */
  #isValid(namespace: string): boolean {
    return !(
      this.#changed.has(namespace) ||
      this.#trying.has(namespace) ||
      [...this.#checked.values()].some(({ keepsLast, refused }) => keepsLast && refused.has(namespace))
    );
  }

  #check(): void {
    this.#timer = undefined;
    if (this.#isChecking) {
      this.#isDue = true;
      return;
    }
    const changed = this.#changed;
    this.#changed = new Set();
    const objects = this.#objects.changes().map(triedChange);
    const requests = new Map<LoadRequest, Trial>();
    const ids = new Set<string>();
    for (const [id, revision] of this.#options.serving()) {
      if (!hasParameters(revision.definition)) {
        continue;
      }
      ids.add(id);
      const known = this.#checked.get(id);
      const isKnown = known?.version === revision.version;
      if (isKnown && revision.revision !== undefined) {
        // Another revision may evaluate the same, as after an undo.
        this.#options.checked(revision.revision.name, known.report);
      }
      const namespaces = isKnown ? [...changed] : placesOf(revision.definition, objects);
      if (namespaces.length > 0 || !isKnown) {
        const trial = { objects: objectsFor(revision.definition, objects, namespaces), namespaces };
        requests.set(servingLoad(id, revision, trial), { revision, namespaces });
      }
    }
    for (const id of this.#checked.keys()) {
      if (!ids.has(id)) {
        this.#checked.delete(id);
      }
    }
    if (requests.size > 0) {
      this.#isChecking = true;
      this.#trying = new Set([...requests.values()].flatMap(({ namespaces }) => namespaces));
      this.#options.load([...requests.keys()], (outcomes) => {
        for (const [request, outcome] of outcomes) {
          const one = requests.get(request);
          requests.delete(request);
          if (one !== undefined) {
            this.#checkedOne(request.id, one, outcome);
          }
        }
        if (requests.size === 0) {
          this.#isChecking = false;
          this.#trying = new Set();
          if (this.#keepsLast) {
            this.#options.record?.changed(() => this.#lastValid());
          }
        }
        if (this.#isDue && !this.#isChecking) {
          this.#isDue = false;
          this.schedule();
        }
      });
    }
  }

  /** The last valid parameters of namespaces whose parameters are invalid, without Secrets, which are not for disks. */
  *#lastValid(): Generator<LastValidEntry> {
    yield* this.#recorded.values();
    for (const { apiVersion, kind, objects } of this.#objects.changes()) {
      for (const [key, , , previous] of objects) {
        const reference = { apiVersion, kind, ...key };
        if (previous !== undefined && kind !== 'Secret' && !this.#isValid(namespaceOf({ kind }, key))) {
          yield [reference, previous];
        }
      }
    }
  }

  /** Records an outcome. Namespaces that were not tried are left to the next check. */
  #checkedOne(id: string, { revision, namespaces }: Trial, outcome: LoadOutcome): void {
    const { tried = 0, refused = [] } = (outcome.ok ? outcome.refused : undefined) ?? {};
    for (const namespace of namespaces.slice(tried)) {
      this.#changed.add(namespace);
    }
    if (outcome.ok) {
      this.#isDue ||= tried < namespaces.length;
      this.#record(id, revision, namespaces.slice(0, tried), refused);
    }
  }

  #record(
    id: string,
    { version, revision, definition }: LoadedRevision,
    tried: readonly string[],
    refused: readonly RefusedNamespace[],
  ): void {
    const before = this.#checked.get(id);
    const keepsLast = moduleUses(definition).some(({ parameters }) => parameters?.onInvalid === 'KeepLast');
    const known: Checked =
      before?.version === version
        ? before
        : { version, keepsLast, refused: new Map<string, string>(), report: undefined };
    this.#checked.set(id, known);
    for (const namespace of tried) {
      known.refused.delete(namespace);
    }
    for (const { namespace, message } of firstOfEach(refused)) {
      known.refused.set(namespace, message);
    }
    const total = placesOf(definition, this.#objects.changes()).length;
    const all = [...known.refused].map(([namespace, message]) => ({ namespace, message }));
    const report = all.length === 0 ? undefined : refusedReport({ tried: Math.max(total, all.length), refused: all });
    if (revision !== undefined && (before !== known || !isDeepStrictEqual(report, known.report))) {
      known.report = report;
      this.#options.checked(revision.name, report);
    }
  }
}

type Refused = Pick<RefusedNamespace, 'namespace' | 'message'>;

/** The first of the refused namespaces by name, and their number. */
export function refusedReport({
  tried,
  refused,
}: {
  readonly tried: number;
  readonly refused: readonly Refused[];
}): RefusedReport {
  const all = firstOfEach(refused);
  const first = all.toSorted((a, b) => (a.namespace < b.namespace ? -1 : 1)).slice(0, MAX_REFUSED_NAMESPACES);
  return { count: all.length, tried, first };
}

/** One for each namespace: members of a group may refuse it for several reasons. */
function firstOfEach(refused: readonly Refused[]): readonly Refused[] {
  const first = new Map<string, Refused>();
  for (const { namespace, message } of refused) {
    first.set(namespace, first.get(namespace) ?? { namespace, message });
  }
  return [...first.values()];
}

/** Has what serves tried with parameters, with the modules that it serves with. */
export function servingLoad(
  id: string,
  { definition, digests, verified }: LoadedRevision,
  trial: ParameterTrial,
): LoadRequest {
  const namespace = namespaceOfPolicyId(id);
  return {
    id,
    definition,
    digests: Object.fromEntries(Object.entries(digests).filter(([, digest]) => digest.startsWith('sha256:'))),
    ...(verified === undefined ? {} : { verified }),
    from: 'cache',
    isForTenant: namespace !== undefined,
    namespace,
    trial,
  };
}

function hasParameters(definition: PolicyDefinition): boolean {
  return moduleUses(definition).some(({ parameters }) => parameters !== undefined);
}

/** Objects for a trial: not the ones before, with which KeepLast would hide that parameters are invalid. */
function triedChange(change: WatchedChange): WatchedChange {
  const objects = change.objects.map(([key, object, failure]): WatchedObject => [key, object, failure]);
  return { ...change, isAll: false, objects };
}

/** The namespace whose parameters are in an object. */
function namespaceOf({ kind }: Pick<WatchedChange, 'kind'>, { namespace, name }: WatchedObject[0]): string {
  return kind === 'Namespace' ? name : (namespace ?? '');
}

/** The objects that a policy needs for some namespaces: the loader gets a copy of them. */
function objectsFor(
  definition: PolicyDefinition,
  changes: readonly WatchedChange[],
  namespaces: readonly string[],
): readonly WatchedChange[] {
  const shared = moduleUses(definition).flatMap(({ parameters }) =>
    parameters !== undefined && 'resource' in parameters.from ? (parameters.from.resource.namespace ?? []) : [],
  );
  const needed = new Set([...namespaces, ...shared]);
  return changes.map((change) => ({
    ...change,
    objects: change.objects.filter(([{ namespace, name }]) => needed.has(namespace ?? name)),
  }));
}

/** Namespaces with parameters of a policy. */
function placesOf(definition: PolicyDefinition, changes: readonly WatchedChange[]): readonly string[] {
  const places = new Set<string>();
  for (const { parameters } of moduleUses(definition)) {
    if (parameters === undefined) {
      continue;
    }
    const { from } = parameters;
    const { apiVersion, kind } = 'resource' in from ? from.resource : { apiVersion: 'v1', kind: 'Namespace' };
    const name = 'resource' in from ? from.resource.name : undefined;
    for (const change of changes.filter((one) => one.apiVersion === apiVersion && one.kind === kind)) {
      for (const [key, object] of change.objects) {
        if (object !== undefined && ('namespace' in from ? hasKey(object, from.namespace) : key.name === name)) {
          places.add(name === undefined ? key.name : (key.namespace ?? ''));
        }
      }
    }
  }
  return [...places];
}

function textOf({ apiVersion, kind, namespace = '', name }: LastValidEntry[0]): string {
  return JSON.stringify([apiVersion, kind, namespace, name]);
}
