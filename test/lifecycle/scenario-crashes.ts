// Scenario 5: after a crash at any step of a rollout, enforcement continues and the rollout completes.
import assert from 'node:assert/strict';
import type { JsonObject } from '../../src/resources/index.ts';
import { ANNOTATIONS } from '../../src/resources/index.ts';
import { LEASES } from '../../src/runtime/index.ts';
import type { LabProcess } from './rollout-lab-process.ts';
import { kind, labelOf, NAMESPACE, requiresLabel, type RolloutLab } from './rollout-lab.ts';
import type { ApiRequest } from './rollout-lab-proxy.ts';
import type { CrashedPart } from './rollout-lab-target.ts';
import { RELAXED_PAUSE_MS, ReviewStream } from './scenario-stream.ts';
import { enforced, refuses } from './scenario-updates.ts';

/** The writes of a controller during an update, in order. */
const STEPS: readonly { readonly name: string; readonly is: (request: ApiRequest, policy: string) => boolean }[] = [
  { name: 'the revision is created', is: ({ method, path }) => method === 'POST' && path.endsWith('/policyrevisions') },
  { name: 'it is validated', is: writesState('Validated') },
  { name: 'it serves', is: writesState('Serving') },
  { name: 'the old one is retired', is: writesState('Retired') },
  {
    name: 'the status is written',
    is: ({ path, body }, policy) => path.endsWith(`/${policy}/status`) && statusOf(body)['phase'] === 'Active',
  },
];

/**
 * The requests that the policy of these scenarios matches, and one more kind that no other policy of the lab matches.
 */
const RULE = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'] };
const NARROW = [{ ...RULE, resources: ['configmaps'] }];
const WIDE = [{ ...RULE, resources: ['configmaps', 'serviceaccounts'] }];

/** What crashes. */
type Victim = 'controller' | 'replica' | CrashedPart;

function writesState(state: string): (request: ApiRequest) => boolean {
  return ({ path, body }) => path.includes('/policyrevisions/') && statusOf(body)['state'] === state;
}

function statusOf(body: unknown): Record<string, unknown> {
  return ((body as { status?: unknown } | undefined)?.status ?? {}) as Record<string, unknown>;
}

/** Whether the request writes the shared webhook configuration. */
function writesWebhooks({ method, path, query }: ApiRequest): boolean {
  return (
    ['PUT', 'PATCH'].includes(method) && path.includes('/validatingwebhookconfigurations/') && !query.has('dryRun')
  );
}

/** The moments of a step at which a part crashes. */
type Moments = readonly ('before' | 'after')[];

/** A quick run kills all but the controller, which writes the steps, at the first steps only. */
const QUICK_STEPS = 2;

/**
 * A thorough run kills the controller before and after each of its writes. The cluster is the same after one write and before the
 * next, so a quick run kills it before each, and after the last. The other parts alternate between both moments.
 */
function momentsOf(victim: Victim, index: number, isThorough: boolean): Moments {
  if (victim === 'controller') {
    return isThorough || index === STEPS.length - 1 ? ['before', 'after'] : ['before'];
  }
  return !isThorough && index >= QUICK_STEPS ? [] : [index % 2 === 0 ? 'before' : 'after'];
}

export async function crashesAtEveryStep(
  lab: RolloutLab,
  { isThorough }: { readonly isThorough: boolean },
): Promise<void> {
  const name = 'crashes';
  const policy = requiresLabel(name, await lab.module('crashes.wasm'), 'v0');
  const annotations = { [ANNOTATIONS.revisionHistoryLimit]: '100' };
  await enforced(lab, { ...policy, metadata: { name, annotations } }, 'v0');
  let version = 0;
  const victims: readonly Victim[] = ['controller', 'replica', ...lab.target.parts];
  for (const victim of victims) {
    for (const [index, step] of STEPS.entries()) {
      for (const when of momentsOf(victim, index, isThorough)) {
        version += 1;
        const what = `${victim} dies ${when} "${step.name}"`;
        await crash(lab, { name, label: `v${version}`, victim, what, is: step.is, when });
      }
    }
  }
  for (const [when, what, rules] of [
    ['before', 'widens', WIDE],
    ['after', 'narrows', NARROW],
  ] as const) {
    version += 1;
    const label = `v${version}`;
    const dies = { victim: 'controller', what: `controller dies ${when} the shared webhook ${what}`, when } as const;
    await crash(lab, { ...dies, name, label, is: writesWebhooks, rest: { rules } });
    const expected = rules === WIDE ? label : undefined;
    await lab.eventually(
      async () => assert.equal(labelOf(await refusalOfAccount(lab, name)), expected),
      () => `service accounts to be judged anew after ${dies.what}`,
    );
  }
  const revisions = await lab.revisions(name);
  const numbers = revisions.map(({ spec }) => spec.revision);
  assert.deepEqual(
    numbers,
    Array.from({ length: numbers.length }, (_, index) => index + 1),
    'no revision is lost',
  );
  const labels = revisions.map(({ spec }) => (spec.snapshot as { settings: { labels: string[] } }).settings.labels[0]);
  const wanted = Array.from({ length: version + 1 }, (_, index) => `v${index}`);
  assert.deepEqual(labels, wanted, 'each change is one revision');
  const serving = revisions.filter(({ status }) => status?.state === 'Serving');
  assert.deepEqual(
    serving.map(({ spec }) => spec.revision),
    [version + 1],
  );
}

/** The response of a dry run that creates a service account. */
async function refusalOfAccount(lab: RolloutLab, namespace: string): Promise<string | undefined> {
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'probe', namespace } };
  try {
    await lab.cluster.create(kind('v1', 'ServiceAccount'), account, { dryRun: true });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

interface Crash {
  readonly name: string;
  readonly label: string;
  readonly victim: Victim;
  readonly what: string;
  readonly is: (request: ApiRequest, policy: string) => boolean;
  readonly when: 'before' | 'after';
  /** Further changes of the policy. */
  readonly rest?: JsonObject;
}

async function crash(lab: RolloutLab, { name, label, victim, what, is, when, rest = {} }: Crash): Promise<void> {
  await using stream = new ReviewStream(lab, name, { isApiServerOnly: true, pauseMs: RELAXED_PAUSE_MS });
  const hold = lab.proxy.hold((request) => request.user === 'controller' && is(request, name), when);
  await lab.change(name, { settings: { labels: [label] }, ...rest });
  await lab.event(hold.reached, `the moment when ${what}`);
  switch (victim) {
    case 'controller':
      await endController(lab);
      hold.drop();
      await lab.addController();
      break;
    case 'replica': {
      const [replica] = lab.replicas;
      assert.ok(replica);
      await replica.process.end('SIGKILL');
      lab.balance();
      hold.release();
      await lab.restartReplica(replica);
      break;
    }
    default:
      lab.proxy.isDown = true;
      lab.proxy.disconnect();
      hold.drop();
      await lab.target.crash(victim);
      lab.proxy.isDown = false;
      await lab.revive();
  }
  await lab.reaches(name, 'Active', ({ readyReplicas, totalReplicas }) => readyReplicas === 2 && totalReplicas === 2);
  await refuses(lab, name, label);
  const verdicts = await stream.end();
  const admitted = verdicts.filter((verdict) => verdict.what === 'admitted');
  assert.equal(admitted.length, 0, `${what}: ${admitted.length} of ${verdicts.length} bad objects were admitted`);
  if (victim === 'controller') {
    assert.deepEqual(stream.verdicts.filter((verdict) => !/^v\d+$/.test(verdict.what)).slice(0, 3), [], what);
  }
}

export async function endController(lab: RolloutLab): Promise<void> {
  await Promise.all(lab.controllers.map((controller) => controller.end('SIGKILL')));
  lab.controllers.length = 0;
}

/**
 * As by default: with the short one of the lab, a leader whose API server answers no request within a second ends itself, and here nobody
 * starts it again, as a kubelet would.
 */
const USUAL_LEASE = ['--lease-duration=15s'];

/** Kills the leader of two controllers during a rollout, whichever leads by then; the other one completes it. */
export async function leaderIsReplaced(lab: RolloutLab): Promise<void> {
  const name = 'leader';
  await enforced(lab, requiresLabel(name, await lab.module('leader.wasm'), 'old'), 'old');
  await endController(lab);
  const [first, second] = [await lab.addController(true, USUAL_LEASE), await lab.addController(true, USUAL_LEASE)];
  await using stream = new ReviewStream(lab, name, { pauseMs: RELAXED_PAUSE_MS });
  const hold = lab.proxy.hold((request) => request.user === 'controller' && writesState('Serving')(request));
  await lab.change(name, { settings: { labels: ['new'] } } satisfies JsonObject);
  await lab.event(hold.reached, 'the leader to have the revision serve');
  const before = await holderOfLease(lab);
  const [leader, other] = before === identityOf(first) ? [first, second] : [second, first];
  await leader.end('SIGKILL');
  hold.drop();
  await lab.eventually(
    async () => assert.equal(await holderOfLease(lab), identityOf(other)),
    () => 'the other controller to lead',
  );
  await lab.reaches(name, 'Active');
  await refuses(lab, name, 'new');
  assert.deepEqual((await stream.end()).filter(({ what }) => !['old', 'new'].includes(what)).slice(0, 3), []);
}

async function holderOfLease(lab: RolloutLab): Promise<string | undefined> {
  return (await lab.cluster.get(LEASES, { namespace: NAMESPACE, name: 'portcullis-controller' })).spec?.holderIdentity;
}

/** The identity of a controller in the election, which its log has since it waited for leadership, or led. */
function identityOf(controller: LabProcess): unknown {
  return controller.entries.find(({ identity }) => identity !== undefined)?.['identity'];
}
