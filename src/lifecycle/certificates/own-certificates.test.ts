import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { ApiError, type Cluster } from '../../cluster/index.ts';
import { createAuthority, issueCertificate } from '../../https/index.ts';
import { policyServerObjectName } from './policy-server-names.ts';
import { AUTHORITY_SECRET, CONTROLLER_CONTROL_SECRET, CONTROLLER_WEBHOOK_SECRET } from './certificate-names.ts';
import type { CertificateSettings } from './certificate-settings.ts';
import type { CertificatesReport } from './certificates-report.ts';
import { OwnCertificates } from './own-certificates.ts';
import { type ParsedCertificate, parseCertificates } from './parsed-certificate.ts';
import { SecretsScene } from './testing/secrets-scene.ts';

const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
const settings: CertificateSettings = {
  authorityLifetimeMs: 730 * DAY,
  leafLifetimeMs: 90 * DAY,
  overlapMs: 15 * MINUTE,
};
const SERVER = 'policy-server-default-webhook';

/** A controller with a clock that the test sets. */
class TestController {
  readonly own: OwnCertificates;
  now = Date.UTC(2030, 0, 1);
  isLeading = true;
  policyServers: readonly string[] = ['default'];
  isPublished = true;

  constructor({ cluster, namespace }: Pick<SecretsScene, 'cluster' | 'namespace'>) {
    this.own = new OwnCertificates({
      cluster,
      namespace,
      settings,
      now: () => this.now,
      log: pino({ level: 'silent' }),
    });
  }

  pass(): Promise<CertificatesReport> {
    const { policyServers, isLeading } = this;
    return this.own.pass(
      { policyServers, isLeading, isPublished: () => this.isPublished },
      new AbortController().signal,
    );
  }
}

const only = (text: string | undefined): ParsedCertificate => {
  const [certificate, ...others] = parseCertificates(text ?? '');
  assert.ok(certificate !== undefined && others.length === 0);
  return certificate;
};
const reasons = ({ events }: CertificatesReport): readonly string[] => events.map(({ reason }) => reason);

/** Asserts that every Secret has the CA that issued each certificate. */
async function assertTrusted(scene: SecretsScene, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const { 'tls.crt': cert, 'ca.crt': bundle } = await scene.texts(name);
    const leaf = only(cert);
    for (const other of names) {
      const authorities = parseCertificates((await scene.texts(other))['ca.crt'] ?? '');
      assert.ok(
        authorities.some(({ x509 }) => leaf.x509.verify(x509.publicKey)),
        `${other} does not trust ${name}`,
      );
    }
    assert.ok(bundle !== undefined);
  }
}

describe('OwnCertificates', () => {
  const all = [CONTROLLER_WEBHOOK_SECRET, CONTROLLER_CONTROL_SECRET, SERVER, 'policy-server-default-control'];

  it('issues certificates for the controller and policy servers, and renews them only when due', async () => {
    await using scene = await SecretsScene.open();
    const controller = new TestController(scene);
    const first = await controller.pass();
    assert.deepEqual(reasons(first), ['AuthorityCreated']);
    assert.deepEqual([...first.expiries.keys()].toSorted(), [...all, AUTHORITY_SECRET].toSorted());
    await assertTrusted(scene, all);
    const web = only((await scene.texts(SERVER))['tls.crt']).x509;
    assert.equal(
      web.subjectAltName,
      'DNS:policy-server-default.portcullis.svc, DNS:policy-server-default.portcullis.svc.cluster.local, DNS:policy-server-default.portcullis',
    );
    assert.deepEqual(web.keyUsage, ['1.3.6.1.5.5.7.3.1']);
    const control = only((await scene.texts('policy-server-default-control'))['tls.crt']).x509;
    assert.equal(
      control.subjectAltName,
      'DNS:control.portcullis.dev, DNS:default.policy-server.control.portcullis.dev',
    );
    assert.deepEqual(control.keyUsage, ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']);
    const object = await scene.get(SERVER);
    assert.equal(object?.type, 'kubernetes.io/tls');
    assert.equal(object?.metadata.labels?.['app.kubernetes.io/managed-by'], 'portcullis');
    assert.equal(first.bundle, (await scene.texts(SERVER))['ca.crt']);

    controller.now += 30 * DAY;
    const versions = await Promise.all(all.map((name) => scene.get(name)));
    assert.deepEqual(reasons(await controller.pass()), []);
    assert.deepEqual(await Promise.all(all.map((name) => scene.get(name))), versions);

    controller.now += 31 * DAY;
    const last = await controller.pass();
    assert.ok([...last.expiries].every(([, end]) => end - controller.now > 80 * DAY));
    await assertTrusted(scene, all);
  });

  it('issues certificates for new policy servers, keeps those of deleted ones, and replaces those for other names', async () => {
    await using scene = await SecretsScene.open();
    const controller = new TestController(scene);
    await controller.pass();
    const ca = await scene.texts(AUTHORITY_SECRET);
    const before = await scene.texts(SERVER);
    const { cert, key } = await issueCertificate(
      { cert: ca['tls.crt'] ?? '', key: ca['tls.key'] ?? '' },
      {
        commonName: 'other names',
        usages: ['serverAuth'],
        dnsNames: ['policy-server-default.elsewhere.svc'],
        notBefore: new Date(controller.now),
        notAfter: new Date(controller.now + 90 * DAY),
      },
    );
    await scene.put(SERVER, { 'tls.crt': cert, 'tls.key': key });
    controller.policyServers = ['default', 'new', 'eu.west'];
    await controller.pass();
    const dotted = await scene.texts(`${policyServerObjectName('eu.west')}-webhook`);
    assert.match(
      only(dotted['tls.crt']).x509.subjectAltName ?? '',
      /DNS:policy-server-eu-west-[0-9a-f]{10}\.portcullis\.svc,/,
    );
    const after = await scene.texts(SERVER);
    assert.notEqual(after['tls.crt'], cert);
    assert.match(only(after['tls.crt']).x509.subjectAltName ?? '', /policy-server-default\.portcullis\.svc/);
    assert.notEqual(after['tls.crt'], before['tls.crt']);
    await assertTrusted(scene, [...all, 'policy-server-new-webhook', 'policy-server-new-control']);
    controller.policyServers = [];
    await controller.pass();
    assert.notEqual(await scene.get('policy-server-new-webhook'), undefined);
  });

  it('replaces certificates of control ports from before they named their holders', async () => {
    await using scene = await SecretsScene.open();
    const controller = new TestController(scene);
    await controller.pass();
    const ca = await scene.texts(AUTHORITY_SECRET);
    const control = {
      [CONTROLLER_CONTROL_SECRET]: /controller/,
      'policy-server-default-control': /default\.policy-server/,
    };
    const [notBefore, notAfter] = [new Date(controller.now), new Date(controller.now + 90 * DAY)];
    for (const secret of Object.keys(control)) {
      const usages = ['serverAuth', 'clientAuth'] as const;
      const request = { commonName: 'x', usages, dnsNames: ['control.portcullis.dev'], notBefore, notAfter };
      const issued = await issueCertificate({ cert: ca['tls.crt'] ?? '', key: ca['tls.key'] ?? '' }, request);
      await scene.put(secret, { 'tls.crt': issued.cert, 'tls.key': issued.key });
    }
    await new TestController(scene).pass();
    for (const [secret, name] of Object.entries(control)) {
      const { subjectAltName = '' } = only((await scene.texts(secret))['tls.crt']).x509;
      assert.match(subjectAltName, new RegExp(`DNS:${name.source}\\.control\\.portcullis\\.dev`), secret);
    }
    await assertTrusted(scene, all);
  });

  it('rotates the CA on request in two phases, without breaking trust', async () => {
    await using scene = await SecretsScene.open();
    const controller = new TestController(scene);
    await controller.pass();
    const old = only((await scene.texts(AUTHORITY_SECRET))['ca.crt']);
    await scene.put(
      AUTHORITY_SECRET,
      {},
      { annotations: { 'portcullis.dev/rotate': 'now', 'example.com/note': 'foreign' } },
    );

    controller.isPublished = false;
    const introduced = await controller.pass();
    assert.deepEqual([reasons(introduced), introduced.phase], [['RotationStarted'], 'Introducing']);
    assert.equal(parseCertificates(introduced.bundle ?? '').length, 2);
    assert.equal(parseCertificates((await scene.texts(SERVER))['ca.crt'] ?? '').length, 2);
    assert.ok(only((await scene.texts(SERVER))['tls.crt']).x509.verify(old.x509.publicKey));
    controller.now += DAY;
    assert.equal((await controller.pass()).phase, 'Introducing', 'webhook configurations lack the next CA');

    controller.isPublished = true;
    await controller.pass();
    controller.now += 14 * MINUTE;
    assert.equal((await controller.pass()).phase, 'Introducing', 'the overlap is not over');
    controller.now += 2 * MINUTE;
    // Another leader continues.
    const next = new TestController(scene);
    next.now = controller.now;
    const changed = await next.pass();
    assert.deepEqual([reasons(changed), changed.phase], [['AuthorityChanged'], 'Retiring']);
    assert.ok(!only((await scene.texts(SERVER))['tls.crt']).x509.verify(old.x509.publicKey));
    assert.equal(parseCertificates(changed.bundle ?? '').length, 2);
    await assertTrusted(scene, all);

    next.now += 16 * MINUTE;
    const completed = await next.pass();
    assert.deepEqual([reasons(completed), completed.phase], [['RotationCompleted'], 'Stable']);
    assert.notEqual(only(completed.bundle).id, old.id);
    await assertTrusted(scene, all);
    const object = await scene.get(AUTHORITY_SECRET);
    assert.equal(object?.metadata.annotations?.['example.com/note'], 'foreign');
    assert.deepEqual(Object.keys(await scene.texts(AUTHORITY_SECRET)).toSorted(), ['ca.crt', 'tls.crt', 'tls.key']);
    next.now += DAY;
    assert.equal((await next.pass()).phase, 'Stable');
  });

  it('restores a lost CA that it knows', async () => {
    await using scene = await SecretsScene.open();
    const controller = new TestController(scene);
    await controller.pass();
    const before = await scene.texts(AUTHORITY_SECRET);
    await scene.delete(AUTHORITY_SECRET);
    assert.deepEqual(reasons(await controller.pass()), ['AuthorityRestored']);
    assert.deepEqual(await scene.texts(AUTHORITY_SECRET), before);
    await scene.put(AUTHORITY_SECRET, { 'tls.crt': 'garbage' });
    assert.deepEqual(reasons(await controller.pass()), ['AuthorityRestored']);
    assert.deepEqual(await scene.texts(AUTHORITY_SECRET), before);
  });

  it('restores a CA again that is damaged right after it was restored', async () => {
    await using scene = await SecretsScene.open();
    const cluster = new Proxy(scene.cluster, {
      get: (target, name) =>
        name === 'create'
          ? async (...args: Parameters<typeof target.create>) => {
              const created = await target.create(...args);
              await scene.put(AUTHORITY_SECRET, { 'tls.crt': 'garbage', 'tls.key': 'garbage' });
              return created;
            }
          : Reflect.get(target, name).bind(target),
    });
    await new TestController(scene).pass();
    const before = await scene.texts(AUTHORITY_SECRET);
    const controller = new TestController({ cluster, namespace: scene.namespace });
    await controller.pass();
    await scene.delete(AUTHORITY_SECRET);
    assert.deepEqual(reasons(await controller.pass()), ['AuthorityRestored', 'AuthorityRestored']);
    assert.deepEqual(await scene.texts(AUTHORITY_SECRET), before);
  });

  it('creates no new CA when the restoration fails', async () => {
    await using scene = await SecretsScene.open();
    let fails = false;
    const cluster = new Proxy(scene.cluster, {
      get: (target, name) =>
        fails && name === 'create'
          ? () => Promise.reject(new ApiError(503, 'ServiceUnavailable', 'etcd has no leader'))
          : Reflect.get(target, name).bind(target),
    });
    const controller = new TestController({ cluster, namespace: scene.namespace });
    await controller.pass();
    const before = await scene.texts(AUTHORITY_SECRET);
    await scene.delete(AUTHORITY_SECRET);
    fails = true;
    const failed = await controller.pass();
    assert.deepEqual([reasons(failed), failed.failures.length], [[], 1]);
    fails = false;
    assert.deepEqual(reasons(await controller.pass()), ['AuthorityRestored']);
    assert.deepEqual(await scene.texts(AUTHORITY_SECRET), before);
  });

  it('keeps trusting a lost CA that it does not know until a new one replaces it', async () => {
    for (const loss of ['deleted', 'garbage', 'keyless', 'another key'] as const) {
      await using scene = await SecretsScene.open();
      await new TestController(scene).pass();
      const old = only((await scene.texts(AUTHORITY_SECRET))['tls.crt']);
      const leaf = await scene.texts(SERVER);
      if (loss === 'deleted') {
        await scene.delete(AUTHORITY_SECRET);
      } else if (loss === 'garbage') {
        await scene.put(AUTHORITY_SECRET, { 'tls.crt': 'garbage', 'tls.key': '' });
      } else {
        await scene.put(AUTHORITY_SECRET, { 'tls.key': loss === 'keyless' ? '' : (leaf['tls.key'] ?? '') });
      }
      const controller = new TestController(scene);
      controller.policyServers = ['default', 'new'];
      const report = await controller.pass();
      assert.equal(report.phase, 'Introducing', loss);
      assert.equal(parseCertificates(report.bundle ?? '').length, 2);
      assert.equal((await scene.texts(SERVER))['tls.crt'], leaf['tls.crt'], 'certificates stay');
      await assertTrusted(scene, [...all, 'policy-server-new-webhook']);
      controller.now += 16 * MINUTE;
      await controller.pass();
      controller.now += 16 * MINUTE;
      const last = await controller.pass();
      assert.equal(last.phase, 'Stable');
      assert.notEqual(only(last.bundle).id, old.id);
      await assertTrusted(scene, [...all, 'policy-server-new-webhook']);
    }
  });

  it('uses a new CA at once when nothing is left of the old one, or everything has expired', async () => {
    await using scene = await SecretsScene.open();
    const controller = new TestController(scene);
    await controller.pass();
    const old = only((await scene.texts(AUTHORITY_SECRET))['tls.crt']);
    const later = new TestController(scene);
    later.isLeading = false;
    later.now = controller.now + 800 * DAY;
    const report = await later.pass();
    assert.deepEqual([reasons(report), report.phase], [['AuthorityCreated'], 'Stable']);
    assert.notEqual(only(report.bundle).id, old.id);
    await assertTrusted(scene, all);

    await scene.put(AUTHORITY_SECRET, { 'tls.crt': 'garbage' });
    for (const name of all) {
      await scene.put(name, { 'tls.crt': 'x', 'tls.key': 'x', 'ca.crt': 'x' });
    }
    const next = new TestController(scene);
    next.now = later.now;
    assert.equal((await next.pass()).phase, 'Stable');
    await assertTrusted(scene, all);
  });

  it('replaces unusable and foreign certificates, and keeps other data of their Secrets', async () => {
    await using scene = await SecretsScene.open();
    const controller = new TestController(scene);
    await controller.pass();
    const validity = { notBefore: new Date(controller.now), notAfter: new Date(controller.now + 900 * DAY) };
    const foreign = await createAuthority({ commonName: 'foreign', ...validity });
    const { cert, key } = await issueCertificate(foreign, {
      commonName: 'x',
      usages: ['serverAuth', 'clientAuth'],
      dnsNames: ['control.portcullis.dev', 'controller.control.portcullis.dev'],
      ...validity,
    });
    await scene.put(CONTROLLER_CONTROL_SECRET, { 'tls.crt': cert, 'tls.key': key, 'ca.crt': foreign.cert, note: 'x' });
    await scene.put(SERVER, { 'tls.key': key }, { annotations: { 'example.com/note': 'foreign' } });
    await scene.delete(CONTROLLER_WEBHOOK_SECRET);
    const report = await controller.pass();
    assert.deepEqual(reasons(report), ['CertificateReplaced']);
    assert.match(report.events[0]?.message ?? '', /tls\.key is not the key/);
    await assertTrusted(scene, all);
    assert.equal((await scene.texts(CONTROLLER_CONTROL_SECRET))['note'], 'x');
    assert.equal((await scene.get(SERVER))?.metadata.annotations?.['example.com/note'], 'foreign');
    assert.equal(parseCertificates(report.bundle ?? '').length, 1, 'a foreign CA is not trusted');
  });

  it('does not write foreign Secrets', async () => {
    await using scene = await SecretsScene.open();
    await scene.put(SERVER, { mine: 'x' });
    const controller = new TestController(scene);
    const report = await controller.pass();
    assert.deepEqual(
      report.problems.map(({ secret, policyServer, reason }) => [secret, policyServer, reason]),
      [[SERVER, 'default', 'SecretNotOurs']],
    );
    assert.deepEqual({ ...(await scene.texts(SERVER)) }, { mine: 'x' });
    assert.notEqual(report.bundle, undefined);
    assert.equal(report.requeueAfterMs, MINUTE);
    // It does not block a rotation.
    await scene.put(AUTHORITY_SECRET, {}, { annotations: { 'portcullis.dev/rotate': '1' } });
    await controller.pass();
    controller.now += 16 * MINUTE;
    assert.equal((await controller.pass()).phase, 'Retiring');

    await using other = await SecretsScene.open();
    await other.put(AUTHORITY_SECRET, { 'tls.crt': 'mine' });
    const refused = await new TestController(other).pass();
    assert.deepEqual(
      refused.problems.map(({ secret, reason }) => [secret, reason]),
      [[AUTHORITY_SECRET, 'SecretNotOurs']],
    );
    assert.equal(refused.bundle, undefined);
    assert.equal(await other.get(SERVER), undefined);
  });

  it('stops a rotation while a Secret cannot be written, and reports it', async () => {
    await using scene = await SecretsScene.open();
    const { cluster, namespace } = scene;
    let isStuck = false;
    const update: Cluster['update'] = (type, object, options) =>
      isStuck && object.metadata.name === SERVER
        ? Promise.reject(new ApiError(403, 'Forbidden', 'not today'))
        : cluster.update(type, object, options);
    const stuck = new Proxy(cluster, {
      get: (target, key) => (key === 'update' ? update : Reflect.get(target, key).bind(target)),
    });
    const controller = new TestController({ cluster: stuck, namespace });
    await controller.pass();
    await scene.put(AUTHORITY_SECRET, {}, { annotations: { 'portcullis.dev/rotate': '1' } });
    isStuck = true;
    for (let hours = 0; hours < 5; hours += 1) {
      const report = await controller.pass();
      assert.equal(report.phase, 'Introducing');
      assert.deepEqual(
        report.problems.map(({ secret, reason }) => [secret, reason]),
        [[SERVER, 'CertificateNotWritten']],
      );
      assert.equal(report.failures.length, 1);
      controller.now += 60 * MINUTE;
    }
    isStuck = false;
    await controller.pass();
    controller.now += 16 * MINUTE;
    assert.equal((await controller.pass()).phase, 'Retiring');
  });

  it('limits how often it replaces a certificate that another process overwrites', async () => {
    await using scene = await SecretsScene.open();
    const controller = new TestController(scene);
    controller.policyServers = [];
    await controller.pass();
    const reported = async (): Promise<string | undefined> => {
      await scene.put(CONTROLLER_CONTROL_SECRET, { 'tls.crt': 'mine' });
      return (await controller.pass()).problems[0]?.reason;
    };
    let replacements = 0;
    while ((await reported()) === undefined) {
      replacements += 1;
    }
    assert.equal(replacements, 29);
    controller.now += MINUTE;
    assert.equal(await reported(), undefined);
    assert.notEqual((await scene.texts(CONTROLLER_CONTROL_SECRET))['tls.crt'], 'mine');
  });

  it('creates one CA when several controllers run at once', async () => {
    await using scene = await SecretsScene.open();
    const controllers = Array.from({ length: 4 }, () => new TestController(scene));
    for (const [index, controller] of controllers.entries()) {
      controller.isLeading = index < 2;
      controller.now += index * MINUTE;
    }
    await Promise.allSettled(controllers.map((controller) => controller.pass()));
    const ca = only((await scene.texts(AUTHORITY_SECRET))['tls.crt']);
    const reports = [];
    for (const controller of controllers) {
      reports.push(await controller.pass());
    }
    assert.deepEqual(
      reports.map(({ bundle }) => only(bundle).id),
      controllers.map(() => ca.id),
    );
    await assertTrusted(scene, all);
  });

  it('only repairs what is missing while another process leads', async () => {
    await using scene = await SecretsScene.open();
    const controller = new TestController(scene);
    await controller.pass();
    await scene.put(AUTHORITY_SECRET, {}, { annotations: { 'portcullis.dev/rotate': '1' } });
    const follower = new TestController(scene);
    follower.isLeading = false;
    follower.policyServers = [];
    assert.equal((await follower.pass()).phase, 'Stable');
    await scene.delete(CONTROLLER_WEBHOOK_SECRET);
    await follower.pass();
    assert.ok(new X509Certificate((await scene.texts(CONTROLLER_WEBHOOK_SECRET))['tls.crt'] ?? ''));
  });
});
