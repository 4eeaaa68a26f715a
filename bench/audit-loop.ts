// What an audit is compared with: lists the pods of a cluster, and evaluates all policies on each in one loop, in one thread.
// Prints one line of JSON. Started by audit.ts, with the kubeconfig and the folder of modules; with `preview` at the end, for both versions
// of a previewed policy.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { auditPolicy } from '../src/audit/index.ts';
import { createdObject } from '../src/audit/created-object.ts';
import { KubernetesCluster, tokenCredentials } from '../src/cluster/index.ts';
import { EvaluationHost, type TableChange } from '../src/evaluation/index.ts';
import { PolicyEvaluation } from '../src/evaluation/worker/policy-evaluation.ts';
import { type AdmissionPolicyObject, knownKind } from '../src/resources/index.ts';
import { auditPolicies, EXAMPLES, previewVersions } from './audit-policies.ts';

const PAGE = 500;

const [server = '', token = '', caFile = '', what = 'audit'] = process.argv.slice(2);
const ca = readFileSync(caFile, 'utf8');
const cluster = new KubernetesCluster({ server, ca, credentials: tokenCredentials(token) });
const pods = knownKind('v1', 'Pod');
const [type] = (await cluster.discovery.resources()).filter(
  ({ group, resource }) => group === '' && resource === 'pods',
);

const cacheDir = mkdtempSync(join(tmpdir(), 'portcullis-bench-'));
const evaluation = await loaded(cacheDir);
const ids = [...evaluation.ids];
const terms = { timedOut: null, expiresAt: Infinity, slow: null, failedLookups: null };
let [objects, denials, next] = [0, 0, ''];
const [began, cpu] = [performance.now(), process.cpuUsage()];
do {
  const { items, metadata } = await cluster.list(pods, { limit: PAGE, ...(next === '' ? {} : { continue: next }) });
  for (const item of items) {
    if (type === undefined) {
      throw new Error('the cluster serves no pods');
    }
    const input = { object: createdObject(item, type), resource: type, policies: ids };
    const outcome = evaluation.policies.review([1, 1, 'object', '', input, terms]);
    const { result } = outcome.type === 'answer' ? outcome.answer : { result: undefined };
    if (result?.kind !== 'judged' || result.verdicts.length !== ids.length) {
      throw new Error(`no verdicts on ${item.metadata.name}: ${JSON.stringify(outcome)}`);
    }
    objects += 1;
    denials += result.verdicts.filter(({ allowed }) => !allowed).length;
  }
  next = metadata.continue ?? '';
} while (next !== '');
const { user, system } = process.cpuUsage(cpu);
console.log(JSON.stringify({ ms: performance.now() - began, cpuMs: (user + system) / 1_000, objects, denials }));
cluster.close();
rmSync(cacheDir, { recursive: true, force: true });

/** The policies, loaded as a policy server loads them, in this thread. */
async function loaded(folder: string): Promise<{ policies: PolicyEvaluation; ids: readonly string[] }> {
  await using host = new EvaluationHost({
    cacheDir: folder,
    workers: 1,
    policyMemoryBytes: 'unlimited',
    tenantFolder: EXAMPLES,
    log: ({ message, fields }) => console.error(message, fields),
  });
  await host.start();
  const { before, after } = previewVersions();
  const renamed = { ...after, metadata: { name: 'previewed-after' } };
  const wanted = (what === 'preview' ? [before, renamed] : auditPolicies()).map((policy) => {
    const read = auditPolicy(policy as unknown as AdmissionPolicyObject, {
      productNamespace: 'portcullis',
      exemptNamespaces: [],
      modulesUrl: new URL(`file://${EXAMPLES}/`),
    });
    if (!('id' in read)) {
      throw new Error(`${read.name}: ${read.problems.join('; ')}`);
    }
    return read;
  });
  const outcomes = await host.load(wanted);
  const change: TableChange = {
    upserts: wanted.map((policy) => {
      const outcome = outcomes.get(policy);
      if (outcome?.ok !== true) {
        throw new Error(`${policy.name}: ${JSON.stringify(outcome)}`);
      }
      const { id, definition, match } = policy;
      return { id, definition, digests: outcome.digests, ...(match === undefined ? {} : { match }) };
    }),
    removals: [],
    modules: [
      ...new Map(
        [...outcomes.values()].flatMap((one) => (one.ok ? one.modules : [])).map((one) => [one.digest, one]),
      ).values(),
    ],
    retired: [],
  };
  const nothing = (): never => {
    throw new Error('nothing is asked of the host');
  };
  const policies = new PolicyEvaluation({
    defaultTimeoutSeconds: 2,
    port: { request: nothing, inventory: nothing, revisionOf: nothing },
    activity: { enter: () => undefined, leave: () => undefined, waitedMs: 0 },
    log: ({ message, fields }) => console.error(message, fields),
  });
  policies.apply(
    change,
    change.upserts.map((_, index) => index + 1),
  );
  return { policies, ids: wanted.map(({ id }) => id) };
}
