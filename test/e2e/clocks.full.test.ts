// Clock skew: the clocks of controllers and policy servers are a minute ahead of that of the API server, or a minute behind.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { skipWithoutFaketime } from '../cluster/binaries.ts';
import type { KubernetesObject } from '../cluster/cluster.ts';
import { portcullisImage } from '../cluster/node/node.ts';
import type { Pod } from '../cluster/node/pod.ts';
import { removeClocks, withClock } from '../cluster/wrong-clock.ts';
import { guard, leaderIdentity, leadingPod, leaseOfLeader, secret, text, unbroken, VALUES } from './install-case.ts';
import { InstallChanges, phasesOf } from './install-changes.ts';
import { GUARD } from './install-load.ts';
import { CONTROLLER, InstallLab, NAMESPACE, POLICY_SERVER } from './install-lab.ts';

/** Offsets of the Pods of a component, in turn. The clocks of two Pods differ by two minutes. Seconds. */
const OFFSETS = [60, -60] as const;
/** A time that differs by more than this was not written with the clock of this machine. Milliseconds. */
const SKEW_MS = 30_000;
/** The largest difference that the offsets explain, with a reserve. Milliseconds. */
const MAX_OFFSET_MS = 10 * 60_000;
/** A low rate of requests, because this test is about their success only. */
const LOAD = { perSecond: 20 };

const SECRETS = [CONTROLLER, POLICY_SERVER].flatMap((name) => [`${name}-webhook`, `${name}-control`]);

/** Assigns a clock to each Pod: the {@link OFFSETS} in turn, for each component. */
class Clocks {
  readonly #ofPods = new Map<string, { readonly component: string; readonly offset: number }>();

  readonly command = (image: string, { metadata }: Pod): readonly string[] | undefined => {
    const command = portcullisImage(image);
    const { name = '', labels = {} } = metadata;
    const component = labels['app.kubernetes.io/component'] ?? '';
    const others = this.#ofPods.values().filter((other) => other.component === component);
    const offset = this.#ofPods.get(name)?.offset ?? OFFSETS[[...others].length % OFFSETS.length] ?? 0;
    this.#ofPods.set(name, { component, offset });
    return command && withClock(command, offset);
  };

  of(pod: string): number {
    return this.#ofPods.get(pod)?.offset ?? 0;
  }
}

/** How far a time is ahead of this machine's clock. Milliseconds. */
const aheadMs = (time: string | undefined): number => Date.parse(time ?? '') - Date.now();

describe('Portcullis, where clocks are a minute ahead and a minute behind', { skip: skipWithoutFaketime() }, () => {
  const clocks = new Clocks();
  let lab: InstallLab;
  let changes: InstallChanges;
  before(async () => {
    // Throws if the library is missing, before the test waits for Pods.
    withClock([], 0);
    lab = await InstallLab.start({ image: clocks.command });
    await lab.install(VALUES);
    await lab.running();
    await guard(lab);
    changes = await InstallChanges.start(lab);
  });
  after(async () => {
    await (changes as InstallChanges | undefined)?.[Symbol.asyncDispose]();
    await (lab as InstallLab | undefined)?.[Symbol.asyncDispose]();
    removeClocks();
  });

  const authorities = async (): Promise<string> => text((await secret(lab, `${POLICY_SERVER}-webhook`)).data['ca.crt']);

  /** `doctor` reports nothing but a missing label: the namespace was not created by the install command, which sets it. */
  const hasNoFindings = async (): Promise<void> => {
    const { stdout } = await lab.command('doctor', '-o', 'json');
    const { findings } = JSON.parse(stdout) as { findings: readonly { code: string; severity: string }[] };
    const bad = findings.filter(({ severity, code }) => severity !== 'info' && code !== 'NamespaceUnrestricted');
    assert.deepEqual(bad, []);
  };

  it('has clocks that are apart', async () => {
    const leader = await leadingPod(lab);
    const { renewTime, leaseTransitions } = await leaseOfLeader(lab);
    assert.equal(leaseTransitions, 0, 'who is ahead does not take a Lease that is renewed');
    assert.ok(aheadMs(renewTime) * clocks.of(leader.name) > 0 && Math.abs(aheadMs(renewTime)) > SKEW_MS, renewTime);
    const { items } = await lab.get<{ items: (KubernetesObject & { status: { startedAt: string } })[] }>(
      `/apis/portcullis.dev/v1/namespaces/${NAMESPACE}/policyserverreplicas`,
    );
    const ahead = items.map(
      ({ metadata, status }) => Date.parse(status.startedAt) - Date.parse(String(metadata['creationTimestamp'])),
    );
    assert.ok(ahead.length === 2 && ahead.some((ms) => ms > SKEW_MS) && ahead.some((ms) => ms < -SKEW_MS));
  });

  it('issues certificates that are valid at once, and reports none as invalid', async () => {
    for (const name of SECRETS) {
      const { data } = await secret(lab, name);
      for (const pem of [data['tls.crt'], data['ca.crt']]) {
        const { validFromDate } = new X509Certificate(text(pem));
        assert.ok(
          aheadMs(validFromDate.toISOString()) < Math.min(...OFFSETS) * 1000,
          `${name}: ${String(validFromDate)}`,
        );
      }
    }
    await hasNoFindings();
  });

  it('continues under another leader whose clock differs by two minutes, without a change of status', async (test) => {
    const [identity, leader] = [await leaderIdentity(lab), await leadingPod(lab)];
    const { leaseTransitions = 0 } = await leaseOfLeader(lab);
    const policy = changes.statuses('ClusterAdmissionPolicy', GUARD.metadata.name).at(-1);
    const server = changes.statuses('PolicyServer', 'default').at(-1);
    changes.writes();
    await unbroken(
      lab,
      test,
      async () => {
        // A suspended leader does not release its Lease. The other controller sees it expire, by a clock that differs by two minutes.
        // When the first one resumes, it does not lead any more.
        await (async () => {
          using _ = leader.suspend();
          await lab.eventually('another leader', async () => {
            assert.ok(!['', identity].includes(await leaderIdentity(lab)));
          });
        })();
        await lab.eventually('the earlier leader to notice', async () => assert.match(leader.log, /leadership lost/));
        await lab.running();
      },
      LOAD,
    );
    const next = await leadingPod(lab);
    assert.equal(clocks.of(next.name), -clocks.of(leader.name));
    assert.equal((await leaseOfLeader(lab)).leaseTransitions, leaseTransitions + 1);
    assert.deepEqual(changes.writes(), {});
    assert.deepEqual(changes.statuses('ClusterAdmissionPolicy', GUARD.metadata.name), [policy]);
    assert.deepEqual(changes.statuses('PolicyServer', 'default'), [server]);
  });

  it('rolls out changes under it, step by step', async (test) => {
    const change = {
      spec: { settings: { validations: [{ expression: 'false', message: 'refused by the guard, again' }] } },
    };
    await unbroken(
      lab,
      test,
      async () => {
        await lab.kubectl(['patch', 'cap', GUARD.metadata.name, '--type=merge', '-p', JSON.stringify(change)]);
        await lab.active('clusteradmissionpolicies', GUARD.metadata.name);
      },
      LOAD,
    );
    const statuses = changes.statuses('ClusterAdmissionPolicy', GUARD.metadata.name);
    assert.deepEqual(phasesOf(statuses), ['Active', 'Updating', 'Active']);
    const times = statuses.flatMap(({ conditions = [] }) => conditions.map((one) => one.lastTransitionTime));
    assert.ok(
      times.every((time) => Math.abs(aheadMs(time)) < MAX_OFFSET_MS),
      times.join(' '),
    );
  });

  it('changes its CA, and loses nothing', async (test) => {
    const was = await authorities();
    await unbroken(
      lab,
      test,
      async () => {
        await lab.kubectl(['annotate', 'secret/portcullis-ca', 'portcullis.dev/rotate=now', '-n', NAMESPACE]);
        await lab.eventually('another CA, and no other', async () => {
          const are = await authorities();
          assert.notEqual(are, was);
          assert.equal(are.split('BEGIN CERTIFICATE').length, 2);
        });
      },
      LOAD,
    );
    await hasNoFindings();
  });
});
