// Reads the parameters that exist, to try a new revision with them.
import type { Cluster } from '../../cluster/index.ts';
import type { NamespaceKeys, ParametersDefinition, ParametersResource } from '../../engine/index.ts';
import type { WatchedChange, WatchedObject } from '../../evaluation/index.ts';
import { failureOf, textIn, withText } from '../../evaluation/object-feeds/index.ts';
import {
  keyOf,
  kubernetesKind,
  type KubernetesObject,
  namespaceText,
  type ResourceType,
} from '../../resources/index.ts';
import { parseJson } from '../../values/index.ts';

/** Objects that are tried: twice the namespaces that Kubernetes is tested with. Others are not. */
export const MAX_TRIED = 20_000;
/** Objects per page. */
const PAGE_SIZE = 500;

/** Parameters that exist. */
export interface ExistingParameterObjects {
  /** The objects that they are in. */
  readonly objects: readonly WatchedChange[];
  /** The namespaces that have parameters of a policy, or of a member of a group, among those for which they were read. */
  readonly namespacesOf: (one: ParametersDefinition) => readonly string[];
}

export class ExistingParameters {
  readonly #policies: Pick<Cluster, 'discovery' | 'list'>;
  readonly #replica: Pick<Cluster, 'list'>;

  /**
   * @param policies the cluster with the account that policies read with
   * @param replica the cluster with that of the replica, which reads namespaces
   */
  constructor(policies: Pick<Cluster, 'discovery' | 'list'>, replica: Pick<Cluster, 'list'>) {
    this.#policies = policies;
    this.#replica = replica;
  }

  /**
   * The parameters that exist for some policies, read at once, so that all are tried with the same.
   * @param namespace of the policies, if they have one: only their own are read
   * @throws ApiError, ClusterError
   */
  async read(
    all: readonly ParametersDefinition[],
    namespace: string | undefined,
    signal: AbortSignal,
  ): Promise<ExistingParameterObjects> {
    const annotations = [...new Set(all.flatMap((one) => keysOf(one).annotations))];
    const readsNamespaces = all.some((one) => readsNamespace(one));
    const namespaces = readsNamespaces ? await this.#namespaces(annotations, namespace, signal) : [];
    const resources = new Map(
      all.flatMap(({ from }) => ('resource' in from ? [[placeOf(from.resource, namespace), from.resource]] : [])),
    );
    const changes = new Map<string, WatchedChange>();
    for (const [place, resource] of resources) {
      const change = await this.#resources(resource, resource.namespace ?? namespace, signal);
      if (change !== undefined) {
        changes.set(place, change);
      }
    }
    return {
      objects: [...changes.values(), ...(readsNamespaces ? [namespaceChange(namespaces)] : [])],
      namespacesOf: (one) => namespacesOf(one, changes, namespaces, namespace),
    };
  }

  /** Undefined when the kind is not served. */
  async #resources(
    { apiVersion, kind, name }: ParametersResource,
    within: string | undefined,
    signal: AbortSignal,
  ): Promise<WatchedChange | undefined> {
    const type = await this.#policies.discovery.find(apiVersion, kind, { signal });
    if (type === undefined) {
      return undefined;
    }
    const selection = {
      fieldSelector: `metadata.name=${name}`,
      ...(within === undefined ? {} : { namespace: within }),
    };
    const objects = await pages(this.#policies, type, selection, signal, (object): WatchedObject => {
      const kept = withText(object);
      const failure = failureOf(kept);
      return failure === undefined ? [keyOf(object), textIn(kept)] : [keyOf(object), undefined, failure];
    });
    return { apiVersion, kind, isAll: false, objects };
  }

  async #namespaces(
    annotations: readonly string[],
    only: string | undefined,
    signal: AbortSignal,
  ): Promise<readonly WatchedObject[]> {
    const type = kubernetesKind('v1', 'Namespace');
    const selection = only === undefined ? {} : { fieldSelector: `metadata.name=${only}` };
    return type === undefined
      ? []
      : await pages(this.#replica, type, selection, signal, (one) => [
          { name: one.metadata.name ?? '' },
          namespaceText(one.metadata, annotations),
        ]);
  }
}

/** Views of at most {@link MAX_TRIED} objects; whole objects of one page at a time are in memory. */
async function pages(
  cluster: Pick<Cluster, 'list'>,
  type: ResourceType,
  selection: { readonly namespace?: string; readonly fieldSelector?: string },
  signal: AbortSignal,
  watched: (object: KubernetesObject) => WatchedObject,
): Promise<readonly WatchedObject[]> {
  const objects: WatchedObject[] = [];
  let page = await cluster.list(type, { ...selection, limit: PAGE_SIZE, signal });
  objects.push(...page.items.map(watched));
  while (page.metadata.continue !== undefined && objects.length < MAX_TRIED) {
    page = await cluster.list(type, { ...selection, limit: PAGE_SIZE, continue: page.metadata.continue, signal });
    objects.push(...page.items.map(watched));
  }
  return objects;
}

/** The namespaces with parameters of a policy. */
function namespacesOf(
  one: ParametersDefinition,
  changes: ReadonlyMap<string, WatchedChange>,
  namespaces: readonly WatchedObject[],
  own: string | undefined,
): readonly string[] {
  const { from } = one;
  if ('namespace' in from) {
    return namespaces.flatMap(([{ name }, text]) => (text !== undefined && hasKey(text, from.namespace) ? [name] : []));
  }
  const change = changes.get(placeOf(from.resource, own));
  if (change === undefined) {
    return [];
  }
  if (from.resource.namespace === undefined) {
    return change.objects.map(([key]) => key.namespace ?? '');
  }
  return readsNamespace(one) ? namespaces.map(([key]) => key.name) : [''];
}

function keysOf({ from }: ParametersDefinition): NamespaceKeys {
  return 'namespace' in from ? from.namespace : { annotations: [], labels: [] };
}

function readsNamespace({ from, settingsExpression }: ParametersDefinition): boolean {
  return 'namespace' in from || settingsExpression.includes('namespaceObject');
}

/** Identifies the objects of parameters. @param own the namespace of the policy, if it has one */
function placeOf({ apiVersion, kind, namespace, name }: ParametersResource, own: string | undefined): string {
  return JSON.stringify([apiVersion, kind, namespace ?? own, name]);
}

function namespaceChange(objects: readonly WatchedObject[]): WatchedChange {
  return { apiVersion: 'v1', kind: 'Namespace', isAll: false, objects };
}

/** Whether a namespace has one of the keys: others count as having no parameters. */
export function hasKey(
  text: string,
  keys: { readonly annotations: readonly string[]; readonly labels: readonly string[] },
): boolean {
  const { metadata } = parseJson(text) as {
    readonly metadata: Readonly<Record<'annotations' | 'labels', Readonly<Record<string, unknown>>>>;
  };
  return (['annotations', 'labels'] as const).some((field) =>
    keys[field].some((key) => Object.hasOwn(metadata[field] ?? {}, key) && metadata[field][key] !== null),
  );
}
