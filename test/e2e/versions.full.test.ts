// Controllers of two versions: one is upgraded, rolled back, or run beside the other by mistake. Each writes its differences once,
// they do not contest objects for ever, and neither loses what the other one wrote.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import type { KubernetesObject } from '../cluster/cluster.ts';
import { podCommand, portcullisImage } from '../cluster/node/node.ts';
import { base64, guard, leaderIdentity, leadingPod, scale, secret, unbroken, VALUES } from './install-case.ts';
import { InstallChanges, phasesOf } from './install-changes.ts';
import { CONTROLLER, InstallLab, NAMESPACE, POLICY_SERVER } from './install-lab.ts';
import { GUARD } from './install-load.ts';
import { type LaterVersion, laterVersion } from './later-version.ts';

/** The Deployment of the later version's controller. */
const LATER = 'portcullis-later';
const LATER_IMAGE = 'registry.test/portcullis:0.2.0';
/** A low rate of requests, because this test is about their success only. */
const LOAD = { perSecond: 20 };
/** How long to wait for a version to revert writes of the other one. Milliseconds. */
const QUIET_MS = 2_000;
/** How long both versions run. Milliseconds. */
const TOGETHER_MS = 8_000;
/** Maximum number of writes of an object in that time: four by each version without a delay, then delayed more and more. */
const MAX_WRITES_TOGETHER = 16;
/** Statuses change more often, because they list the contested objects. Each such change starts the count again. */
const MAX_STATUSES_TOGETHER = 4 * MAX_WRITES_TOGETHER;

const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';

interface Template {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: { readonly containers: readonly { readonly args: readonly string[] }[] };
}

interface Deployment extends KubernetesObject {
  readonly spec: { readonly replicas: number; readonly revisionHistoryLimit: number; readonly template: Template };
}

interface Configuration extends KubernetesObject {
  readonly webhooks: readonly { readonly timeoutSeconds: number; readonly matchConditions?: readonly object[] }[];
}

describe('Portcullis, in two versions at once', { skip: skipWithoutCluster() }, () => {
  let later: LaterVersion;
  let lab: InstallLab;
  let changes: InstallChanges;
  before(async () => {
    later = await laterVersion();
    lab = await InstallLab.start({
      image: (image) => (image === LATER_IMAGE ? podCommand(later.program) : portcullisImage(image)),
    });
    await lab.install({ ...VALUES, controller: { replicas: 1 } });
    await lab.running();
    await guard(lab);
    await lab.apply(await laterController());
    changes = await InstallChanges.start(lab);
    writes();
  });
  after(async () => {
    await (changes as InstallChanges | undefined)?.[Symbol.asyncDispose]();
    await (lab as InstallLab | undefined)?.[Symbol.asyncDispose]();
    await (later as LaterVersion | undefined)?.[Symbol.asyncDispose]();
  });

  const deployment = (name: string): Promise<Deployment> =>
    lab.get(`/apis/apps/v1/namespaces/${NAMESPACE}/deployments/${name}`);
  const configuration = (name: string): Promise<Configuration> => lab.get(`${CONFIGURATIONS}/${name}`);

  /** The Deployment of the later version's controller: that of the earlier one, with another image and without replicas. */
  const laterController = async (): Promise<object> => {
    const { spec } = await deployment(CONTROLLER);
    const { metadata, spec: pod } = spec.template;
    const labels = { ...metadata.labels, 'e2e.portcullis.dev/version': 'later' };
    // It needs no preStop delay, because clients that call it can call another one.
    const containers = pod.containers.map((container) => ({ ...container, image: LATER_IMAGE, lifecycle: {} }));
    return {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: LATER, namespace: NAMESPACE },
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { ...pod, containers } },
      },
    };
  };

  /** Scales a controller, and waits until its Pods run. */
  const run = async (name: string, replicas: number): Promise<void> => {
    await scale(lab, name, replicas);
    await lab.rolledOut(name);
  };

  /** Waits until the objects are as this version writes them. */
  const isOf = (version: 'earlier' | 'later'): Promise<void> =>
    lab.eventually(`what the ${version} version writes`, async () => {
      const isLater = version === 'later';
      const { spec } = await deployment(POLICY_SERVER);
      assert.equal(spec.revisionHistoryLimit, isLater ? 5 : 3);
      const { webhooks } = await configuration('portcullis-default');
      assert.equal(JSON.stringify(webhooks).includes('portcullis.dev/exempt-later'), isLater);
      const own = await configuration('portcullis-own-kinds');
      assert.deepEqual(new Set(own.webhooks.map(({ timeoutSeconds }) => timeoutSeconds)), new Set([isLater ? 12 : 10]));
    });

  /** Checks that the policy stayed Active. The policy server may be not Ready until its changed Deployment is observed. */
  const hasStableStatus = (): void => {
    assert.deepEqual(phasesOf(changes.statuses('ClusterAdmissionPolicy', GUARD.metadata.name)), ['Active']);
    const conditions = changes.statuses('PolicyServer', 'default').flatMap(({ conditions: all = [] }) => all);
    assert.deepEqual(
      conditions.filter(({ status, reason }) => status !== 'True' && reason !== 'RollingOut'),
      [],
    );
  };

  /** The writes, without those of the test itself. */
  const writes = (): Readonly<Record<string, number>> => {
    const { [`Deployment ${CONTROLLER}`]: _earlier, [`Deployment ${LATER}`]: _later, ...others } = changes.writes();
    return others;
  };

  const ONCE = {
    'Deployment policy-server-default': 1,
    'ValidatingWebhookConfiguration portcullis-default': 1,
    'ValidatingWebhookConfiguration portcullis-own-kinds': 1,
  };

  it('runs a later one beside the earlier one that leads, and nothing is written', async () => {
    const leader = await leaderIdentity(lab);
    await run(LATER, 1);
    await sleep(QUIET_MS);
    assert.equal(await leaderIdentity(lab), leader);
    assert.deepEqual(writes(), {});
    await isOf('earlier');
    hasStableStatus();
  });

  it('is taken over by the later version, which writes its differences once', async (test) => {
    await unbroken(
      lab,
      test,
      async () => {
        await run(CONTROLLER, 0);
        await isOf('later');
        // The earlier version runs again, and waits for leadership.
        await run(CONTROLLER, 1);
        await sleep(QUIET_MS);
      },
      LOAD,
    );
    assert.ok((await leadingPod(lab)).name.startsWith(LATER));
    assert.deepEqual(writes(), ONCE);
    await isOf('later');
    hasStableStatus();
  });

  it('is rolled back: the earlier one sets its own back, once, and leaves what it does not know', async (test) => {
    const annotations = { 'portcullis.dev/later': 'yes' };
    const noted = [
      `/api/v1/namespaces/${NAMESPACE}/secrets/portcullis-ca`,
      `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/${POLICY_SERVER}`,
      `${CONFIGURATIONS}/portcullis-default`,
    ];
    for (const path of noted) {
      await lab.cluster.expect('PATCH', path, { metadata: { annotations, labels: { later: 'yes' } } });
    }
    await lab.cluster.expect('PATCH', noted[0] ?? '', { data: { 'later.json': base64('{}') } });
    await lab.apply({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'portcullis-later', labels: { 'app.kubernetes.io/managed-by': 'portcullis' } },
      webhooks: [],
    });
    const names = [
      'portcullis-ca',
      ...[CONTROLLER, POLICY_SERVER].flatMap((name) => [`${name}-webhook`, `${name}-control`]),
    ];
    const were = await Promise.all(names.map((name) => secret(lab, name)));
    await sleep(QUIET_MS);
    changes.writes();
    await unbroken(
      lab,
      test,
      async () => {
        await run(LATER, 0);
        await isOf('earlier');
        await sleep(QUIET_MS);
      },
      LOAD,
    );
    assert.deepEqual(writes(), ONCE);
    assert.deepEqual(await Promise.all(names.map((name) => secret(lab, name))), were);
    for (const path of noted) {
      const { metadata } = await lab.get(path);
      assert.deepEqual(
        [metadata.annotations?.['portcullis.dev/later'], metadata.labels?.['later']],
        ['yes', 'yes'],
        path,
      );
    }
    await configuration('portcullis-later');
    hasStableStatus();
  });

  it('is not fought over by two that both write, without an election, and enforces meanwhile', async (test) => {
    const alone = { op: 'add', path: '/spec/template/spec/containers/0/args/-', value: '--no-leader-elect' };
    for (const name of [CONTROLLER, LATER]) {
      const patch = JSON.stringify([alone]);
      await lab.kubectl(['patch', 'deployment', name, '-n', NAMESPACE, '--type=json', '-p', patch]);
    }
    await unbroken(
      lab,
      test,
      async () => {
        await Promise.all([lab.rolledOut(CONTROLLER), run(LATER, 1)]);
        changes.writes();
        changes.statuses('PolicyServer', 'default');
        changes.statuses('ClusterAdmissionPolicy', GUARD.metadata.name);
        await sleep(TOGETHER_MS);
        const objects = writes();
        const statuses = {
          'status of the PolicyServer': changes.statuses('PolicyServer', 'default').length,
          'status of the policy': changes.statuses('ClusterAdmissionPolicy', GUARD.metadata.name).length,
        };
        test.diagnostic(JSON.stringify({ ...objects, ...statuses }));
        const above = (counts: Readonly<Record<string, number>>, most: number): readonly string[] =>
          Object.entries(counts).flatMap(([what, count]) => (count > most ? [`${what}: ${count}`] : []));
        assert.deepEqual(above(objects, MAX_WRITES_TOGETHER), []);
        assert.deepEqual(above(statuses, MAX_STATUSES_TOGETHER), []);
        assert.match(lab.node.logs(), /it is restored with growing delays/, 'the two do not agree');
        await run(LATER, 0);
        await isOf('earlier');
      },
      LOAD,
    );
    await lab.active('clusteradmissionpolicies', GUARD.metadata.name);
    await lab.running();
  });
});
