// Reads the parameters that exist, to try a new revision with them.
import type { Cluster } from '../../cluster/index.ts';
import type { ParametersDefinition } from '../../engine/index.ts';
import type { ParameterTrial, WatchedChange, WatchedObject } from '../../evaluation/index.ts';
import { keyOf, kubernetesKind, type KubernetesObject, type ResourceType } from '../../resources/index.ts';
import { parseJson } from '../../values/index.ts';
import { namespaceView } from './namespace-feed.ts';
import { failureOf, textIn, withText } from './parameter-object.ts';

/** Objects that are tried: twice the namespaces that Kubernetes is tested with. Others are not. */
const MAX_TRIED = 20_000;
/** Objects per page. */
const PAGE_SIZE = 500;

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
   * The parameters that exist; undefined when the kind is not served.
   * @param namespace of the policy, if it has one: only its own are read
   * @throws ApiError, ClusterError
   */
  async read(
    { from, settingsExpression }: ParametersDefinition,
    namespace: string | undefined,
    signal: AbortSignal,
  ): Promise<ParameterTrial | undefined> {
    const annotations = 'namespace' in from ? from.namespace.annotations : [];
    const readsNamespaces = 'namespace' in from || settingsExpression.includes('namespaceObject');
    const namespaces = readsNamespaces ? await this.#namespaces(annotations, namespace, signal) : [];
    if ('namespace' in from) {
      const { labels } = from.namespace;
      const names = namespaces.flatMap(([{ name }, view]) =>
        view !== undefined && hasKey(view, { annotations, labels }) ? [name] : [],
      );
      return { objects: [namespaceChange(namespaces)], namespaces: names };
    }
    const { apiVersion, kind, name } = from.resource;
    const type = await this.#policies.discovery.find(apiVersion, kind, { signal });
    if (type === undefined) {
      return undefined;
    }
    const within = from.resource.namespace ?? namespace;
    const selection = {
      fieldSelector: `metadata.name=${name}`,
      ...(within === undefined ? {} : { namespace: within }),
    };
    const objects = await pages(this.#policies, type, selection, signal, (object): WatchedObject => {
      const kept = withText(object);
      const failure = failureOf(kept);
      return failure === undefined ? [keyOf(object), textIn(kept)] : [keyOf(object), undefined, failure];
    });
    const change: WatchedChange = { apiVersion, kind, isAll: false, objects };
    const places = objects.map(([key]) => key.namespace ?? '');
    const all = readsNamespaces ? namespaces.map(([key]) => key.name) : [''];
    const tried = from.resource.namespace === undefined ? places : all;
    return { objects: [change, namespaceChange(namespaces)], namespaces: tried };
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
          namespaceView(one, annotations),
        ]);
  }
}

/** Views of at most {@link MAX_TRIED} objects; whole objects of one page at a time are in memory. */
async function pages(
  cluster: Pick<Cluster, 'list'>,
  type: ResourceType,
  selection: { readonly namespace?: string; readonly fieldSelector?: string },
  signal: AbortSignal,
  view: (object: KubernetesObject) => WatchedObject,
): Promise<readonly WatchedObject[]> {
  const views: WatchedObject[] = [];
  let page = await cluster.list(type, { ...selection, limit: PAGE_SIZE, signal });
  views.push(...page.items.map(view));
  while (page.metadata.continue !== undefined && views.length < MAX_TRIED) {
    page = await cluster.list(type, { ...selection, limit: PAGE_SIZE, continue: page.metadata.continue, signal });
    views.push(...page.items.map(view));
  }
  return views;
}

function namespaceChange(objects: readonly WatchedObject[]): WatchedChange {
  return { apiVersion: 'v1', kind: 'Namespace', isAll: false, objects };
}

/** Whether a namespace has one of the keys: others count as having no parameters. */
export function hasKey(
  view: string,
  keys: { readonly annotations: readonly string[]; readonly labels: readonly string[] },
): boolean {
  const { metadata } = parseJson(view) as {
    readonly metadata: Readonly<Record<'annotations' | 'labels', Readonly<Record<string, unknown>>>>;
  };
  return (['annotations', 'labels'] as const).some((field) =>
    keys[field].some((key) => Object.hasOwn(metadata[field] ?? {}, key) && metadata[field][key] !== null),
  );
}
