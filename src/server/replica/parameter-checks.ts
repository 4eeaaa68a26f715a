// Checks the parameters of policies that serve whenever they change, so that their status names invalid ones.
import { isDeepStrictEqual } from 'node:util';
import { MAX_REFUSED_NAMESPACES, type RefusedReport } from '../../control/index.ts';
import type { ModuleUse, PolicyDefinition } from '../../engine/index.ts';
import {
  type LoadOutcome,
  type LoadRequest,
  type RefusedNamespace,
  type WatchedChange,
  WatchedObjects,
} from '../../evaluation/index.ts';
import { isNamespacedPolicyId } from '../../resources/index.ts';
import { hasKey } from './existing-parameters.ts';
import type { LoadedRevision } from '../policies/registry-entry.ts';

/** Delay after a change, so that one check and one status are for many. Milliseconds. */
const CHECK_DELAY_MS = 2_000;

export interface ParameterChecksOptions {
  /** Versions of policies that serve. */
  readonly serving: () => Iterable<readonly [id: string, revision: LoadedRevision]>;
  readonly load: (
    requests: readonly LoadRequest[],
    done: (outcomes: ReadonlyMap<LoadRequest, LoadOutcome>) => void,
  ) => void;
  /** Called with the refused namespaces of a PolicyRevision; undefined: there are none. */
  readonly checked: (revision: string, refused: RefusedReport | undefined) => void;
  /** Default: {@link CHECK_DELAY_MS}. */
  readonly delayMs?: number;
}

/** What is known about one version of a policy. */
interface Checked {
  readonly version: string;
  /** Messages by refused namespace. */
  readonly refused: Map<string, string>;
  report: RefusedReport | undefined;
}

export class ParameterChecks {
  readonly #options: ParameterChecksOptions;
  readonly #objects = new WatchedObjects();
  /** Namespaces whose parameters have changed; all others were tried. */
  #changed = new Set<string>();
  readonly #checked = new Map<string, Checked>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ParameterChecksOptions) {
    this.#options = options;
  }

  /** Takes a change that workers get as well. */
  apply(change: WatchedChange): void {
    this.#objects.apply(change);
    for (const [{ namespace, name }] of change.objects) {
      this.#changed.add(change.kind === 'Namespace' ? name : (namespace ?? ''));
    }
    this.schedule();
  }

  /** Checks soon, also because other policies serve. */
  schedule(): void {
    this.#timer ??= setTimeout(() => this.#check(), this.#options.delayMs ?? CHECK_DELAY_MS).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #check(): void {
    this.#timer = undefined;
    const changed = this.#changed;
    this.#changed = new Set();
    const objects = this.#objects.changes().map((change) => ({ ...change, isAll: false }));
    const requests = new Map<
      LoadRequest,
      { readonly revision: LoadedRevision; readonly namespaces: readonly string[] }
    >();
    const ids = new Set<string>();
    for (const [id, revision] of this.#options.serving()) {
      if (!hasParameters(revision.definition)) {
        continue;
      }
      ids.add(id);
      const isKnown = this.#checked.get(id)?.version === revision.version;
      const namespaces = isKnown ? [...changed] : placesOf(revision.definition, objects);
      if (namespaces.length > 0 || !isKnown) {
        const { definition, digests } = revision;
        const pins = Object.fromEntries(Object.entries(digests).filter(([, digest]) => digest.startsWith('sha256:')));
        const trial = { objects: objectsFor(definition, objects, namespaces), namespaces };
        const isForTenant = isNamespacedPolicyId(id);
        requests.set({ id, definition, digests: pins, from: 'cache', isForTenant, trial }, { revision, namespaces });
      }
    }
    for (const id of this.#checked.keys()) {
      if (!ids.has(id)) {
        this.#checked.delete(id);
      }
    }
    if (requests.size > 0) {
      this.#options.load([...requests.keys()], (outcomes) => {
        for (const [request, outcome] of outcomes) {
          const one = requests.get(request);
          if (outcome.ok && one !== undefined) {
            this.#record(request.id, one.revision, one.namespaces, outcome.refused?.refused ?? []);
          }
        }
      });
    }
  }

  #record(
    id: string,
    { version, revision, definition }: LoadedRevision,
    tried: readonly string[],
    refused: readonly RefusedNamespace[],
  ): void {
    const before = this.#checked.get(id);
    const known: Checked =
      before?.version === version ? before : { version, refused: new Map<string, string>(), report: undefined };
    this.#checked.set(id, known);
    for (const namespace of tried) {
      known.refused.delete(namespace);
    }
    for (const { namespace, message } of refused) {
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

/** The first of the refused namespaces by name, and their number. */
export function refusedReport({
  tried,
  refused,
}: {
  readonly tried: number;
  readonly refused: readonly RefusedNamespace[];
}): RefusedReport {
  const first = refused.toSorted((a, b) => (a.namespace < b.namespace ? -1 : 1)).slice(0, MAX_REFUSED_NAMESPACES);
  return { count: refused.length, tried, first };
}

function hasParameters(definition: PolicyDefinition): boolean {
  return usesOf(definition).some(({ parameters }) => parameters !== undefined);
}

/** A policy alone, or the members of a group. */
function usesOf(definition: PolicyDefinition): readonly ModuleUse[] {
  return definition.kind === 'policy' ? [definition] : definition.members;
}

/** The objects that a policy needs for some namespaces: the loader gets a copy of them. */
function objectsFor(
  definition: PolicyDefinition,
  changes: readonly WatchedChange[],
  namespaces: readonly string[],
): readonly WatchedChange[] {
  const shared = usesOf(definition).flatMap(({ parameters }) =>
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
  for (const { parameters } of usesOf(definition)) {
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
