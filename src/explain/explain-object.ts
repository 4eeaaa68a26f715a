// The one entry for kinds whose status says what is wrong: reads with the rights of the user, and explains.
import type { Cluster } from '../cluster/index.ts';
import { listRevisions } from '../rollout/history/index.ts';
import {
  type AdmissionPolicyObject,
  DEFAULT_POLICY_SERVER,
  exceptedPolicyId,
  type KubernetesObject,
  NETWORK_POLICY_STATUSES,
  POLICIES_GROUP,
  POLICY_EXCEPTIONS,
  POLICY_KINDS,
  POLICY_SERVERS,
  type PolicyException,
  type PolicyServerObject,
  PORTCULLIS_GROUP,
  type ResourceType,
} from '../resources/index.ts';
import { explainAdmissionPolicy } from './explain-admission-policy.ts';
import { explainNetworkPolicy } from './explain-network-policy.ts';
import { explainPolicyException } from './explain-policy-exception.ts';
import { explainPolicyServer } from './explain-policy-server.ts';
import type { Asked, Explanation } from './explanation.ts';
import { type Read, readAs, readObject } from './read.ts';

type Kind = Pick<ResourceType, 'group' | 'kind'>;
type Reader = Pick<Cluster, 'get' | 'list'>;

const ADMISSION_KINDS: ReadonlySet<string> = new Set(POLICY_KINDS.map(({ kind }) => kind));

export interface ExplainQuestion extends Asked {
  /** The namespace of Portcullis. */
  readonly productNamespace: string;
}

/** Explains an object; undefined for a kind that is not explained. @throws ApiError, ClusterError */
export function explainerOf({
  group,
  kind,
}: Kind): ((cluster: Reader, object: KubernetesObject, question: ExplainQuestion) => Promise<Explanation>) | undefined {
  if (group === POLICIES_GROUP && ADMISSION_KINDS.has(kind)) {
    // Validated by the schema of the kind.
    return (cluster, object, question) => explainPolicy(cluster, object as AdmissionPolicyObject, question);
  }
  if (group === POLICIES_GROUP && kind === POLICY_SERVERS.kind) {
    return (_, object, question) =>
      Promise.resolve(explainPolicyServer(object as PolicyServerObject, question.productNamespace, question));
  }
  if (group === PORTCULLIS_GROUP && kind === POLICY_EXCEPTIONS.kind) {
    return (cluster, object, question) => explainException(cluster, object as PolicyException, question);
  }
  return group === 'networking.k8s.io' && kind === 'NetworkPolicy' ? explainNetwork : undefined;
}

async function explainPolicy(
  cluster: Reader,
  policy: AdmissionPolicyObject,
  question: ExplainQuestion,
): Promise<Explanation> {
  const { productNamespace } = question;
  const [server, revisions] = await Promise.all([
    readObject(cluster, POLICY_SERVERS, { name: policy.spec.policyServer ?? DEFAULT_POLICY_SERVER }),
    readAs(listRevisions(cluster, policy, productNamespace)),
  ]);
  return explainAdmissionPolicy({ policy, server, revisions, productNamespace }, question);
}

async function explainException(cluster: Reader, exception: PolicyException, question: Asked): Promise<Explanation> {
  const { metadata, spec } = exception;
  const { namespace = '' } = metadata;
  const policies = await Promise.all(
    spec.policies.map(
      async (one) => [exceptedPolicyId(one, namespace), await readPolicy(cluster, one, namespace)] as const,
    ),
  );
  return explainPolicyException({ exception, policies: new Map(policies), now: Date.now() }, question);
}

async function readPolicy(
  cluster: Reader,
  { kind, name }: PolicyException['spec']['policies'][number],
  namespace: string,
): Promise<Read<KubernetesObject>> {
  const type = POLICY_KINDS.find((one) => one.kind === kind);
  return type === undefined
    ? 'absent'
    : await readObject(cluster, type, type.namespaced ? { namespace, name } : { name });
}

async function explainNetwork(
  cluster: Reader,
  policy: KubernetesObject,
  question: ExplainQuestion,
): Promise<Explanation> {
  const { namespace = '', name = '' } = policy.metadata;
  return explainNetworkPolicy(
    policy,
    await readObject(cluster, NETWORK_POLICY_STATUSES, { namespace, name }),
    question,
  );
}
