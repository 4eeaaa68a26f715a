// Objects without which a cluster cannot be repaired, or changes of its policies do not arrive.
import { builtinCatalogue } from '../../engine/network-policy/index.ts';
import { providersOfPod } from '../../network-policy/index.ts';
import { type GroupVersionResource, type KubernetesObject, workloadOf } from '../../resources/index.ts';
import { asJson, isJsonObject, type JsonObject, objectIn, own, textOf, valueAt } from '../../values/index.ts';

interface Guarded {
  readonly name: string;
  readonly namespaces: readonly string[];
  /** Values of `app.kubernetes.io/part-of`, by which its objects are known in any namespace. */
  readonly partOf?: readonly string[];
}

/** By their usual namespaces and labels. Agents of network providers are also known by their pods. */
const GUARDED: readonly Guarded[] = [
  { name: 'Kubernetes', namespaces: ['kube-system', 'kube-public', 'kube-node-lease'] },
  {
    name: 'the network provider',
    namespaces: ['calico-system', 'calico-apiserver', 'tigera-operator', 'kube-flannel', 'openshift-ovn-kubernetes'],
  },
  { name: 'Argo CD', namespaces: ['argocd', 'openshift-gitops'], partOf: ['argocd'] },
  { name: 'Flux', namespaces: ['flux-system'], partOf: ['flux'] },
  { name: 'Portcullis', namespaces: ['portcullis'], partOf: ['portcullis'] },
];

const PART_OF = 'app.kubernetes.io/part-of';

/** What the cluster needs the object for; undefined for the objects of users. */
export function guardOf(object: JsonObject, resource: GroupVersionResource): string | undefined {
  const metadata = objectIn(object, 'metadata');
  const isNamespace = resource.group === '' && resource.resource === 'namespaces';
  const namespace = textOf(own(metadata, isNamespace ? 'name' : 'namespace'));
  const partOf = textOf(valueAt(metadata, 'labels', PART_OF));
  const provider = providerOf(object, resource);
  return provider === undefined
    ? GUARDED.find((one) => one.namespaces.includes(namespace) || one.partOf?.includes(partOf) === true)?.name
    : `the network provider (${provider})`;
}

/** The provider whose agent a pod is, or the pods of a workload are. */
function providerOf(object: JsonObject, resource: GroupVersionResource): string | undefined {
  const pod = resource.group === '' && resource.resource === 'pods' ? object : podOf(object, resource);
  const [provider] = pod === undefined ? [] : providersOfPod(pod as unknown as KubernetesObject, builtinCatalogue());
  return provider;
}

/** A pod of a workload, as far as providers are known by it. */
function podOf(object: JsonObject, resource: GroupVersionResource): JsonObject | undefined {
  const workload = workloadOf(resource);
  const template = workload && valueAt(object, ...workload.path);
  if (workload === undefined || !isJsonObject(template)) {
    return undefined;
  }
  const { name = '', namespace = '' } = objectIn(object, 'metadata');
  const metadata = {
    ...objectIn(template, 'metadata'),
    name,
    namespace,
    ownerReferences: [{ kind: workload.kind, name }],
  };
  return { ...template, metadata: asJson(metadata) };
}
