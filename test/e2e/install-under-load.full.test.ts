// Upgrades, rotations and failures of an installation at 1,000 reviews a second: no request fails, and none is admitted without
// a review.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { guard, leaderIdentity, leadingPod, podNames, secret, text, unbroken, VALUES } from './install-case.ts';
import { CONTROLLER, InstallLab, NAMESPACE, POLICY_SERVER } from './install-lab.ts';

describe('Portcullis, under load', { skip: skipWithoutCluster() }, () => {
  let lab: InstallLab;
  before(async () => {
    lab = await InstallLab.start();
    await lab.install(VALUES);
    await lab.running();
    await guard(lab);
  });
  after(() => (lab as InstallLab | undefined)?.[Symbol.asyncDispose]());

  it('restarts its policy servers and loses nothing', async (test) => {
    await unbroken(lab, test, async () => {
      await lab.kubectl(['rollout', 'restart', `deployment/${POLICY_SERVER}`, '-n', NAMESPACE]);
      await lab.rolledOut(POLICY_SERVER);
    });
  });

  it('changes its leader and loses nothing', async (test) => {
    const was = await leaderIdentity(lab);
    const pod = await leadingPod(lab);
    await unbroken(lab, test, async () => {
      await pod.kill();
      await lab.eventually('another leader', async () => assert.notEqual(await leaderIdentity(lab), was));
    });
    await lab.running();
  });

  it('changes its CA and loses nothing', async (test) => {
    const was = await secret(lab, `${POLICY_SERVER}-webhook`);
    await unbroken(lab, test, async () => {
      await lab.kubectl(['annotate', 'secret/portcullis-ca', 'portcullis.dev/rotate=now', '-n', NAMESPACE]);
      await lab.eventually('another leaf, and one CA', async () => {
        const is = await secret(lab, `${POLICY_SERVER}-webhook`);
        assert.notEqual(is.data['tls.crt'], was.data['tls.crt']);
        const bundle = Buffer.from(is.data['ca.crt'] ?? '', 'base64').toString();
        assert.equal(bundle.split('BEGIN CERTIFICATE').length, 2);
      });
    });
    assert.notEqual(text((await secret(lab, `${POLICY_SERVER}-webhook`)).data['ca.crt']), text(was.data['ca.crt']));
  });

  it('is upgraded and loses nothing', async (test) => {
    const were = [...(await podNames(lab, CONTROLLER)), ...(await podNames(lab, POLICY_SERVER))];
    await unbroken(lab, test, async () => {
      await lab.install({ ...VALUES, image: 'registry.test/portcullis:0.2.0' });
      await lab.rolledOut(CONTROLLER);
      await lab.eventually('policy servers of the new image', async () => {
        const { spec } = await lab.get<{ spec: { template: { spec: { containers: { image: string }[] } } } }>(
          `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/${POLICY_SERVER}`,
        );
        assert.equal(spec.template.spec.containers[0]?.image, 'registry.test/portcullis:0.2.0');
      });
      await lab.running();
    });
    const are = [...(await podNames(lab, CONTROLLER)), ...(await podNames(lab, POLICY_SERVER))];
    assert.ok(are.every((pod) => !were.includes(pod)));
  });
});
