import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { type JsonObject, type KubernetesObject, MANAGED_BY } from '../../resources/index.ts';
import { SharedCaches } from '../../runtime/index.ts';
import { createAuthority, issueCertificate } from '../../https/index.ts';
import { VALIDATING_WEBHOOKS } from '../webhooks/webhook-kinds.ts';
import { CertificateController } from './certificate-controller.ts';
import { AUTHORITY_SECRET, CONTROLLER_WEBHOOK_SECRET, wantedCertificates } from './certificate-names.ts';
import { DEFAULT_CERTIFICATE_SETTINGS } from './certificate-settings.ts';
import { bundleOf, parseCertificates } from './parsed-certificate.ts';
import { SecretsScene, until } from './testing/secrets-scene.ts';

const HOUR = 3_600_000;

/** A running controller. */
class Running implements AsyncDisposable {
  readonly events: string[] = [];
  readonly controller: CertificateController;
  readonly registry = new Registry();
  names: readonly string[] = [];
  readonly #caches: SharedCaches;
  readonly #stop = new AbortController();
  readonly #ended: Promise<unknown>;
  #listener: () => void = () => undefined;

  constructor({ cluster, namespace }: SecretsScene, mode: 'own' | 'external', overlapMs = 15 * 60_000) {
    const log = pino({ level: 'silent' });
    this.#caches = new SharedCaches({ cluster, log });
    this.controller = new CertificateController({
      cluster,
      caches: this.#caches,
      namespace,
      mode,
      policyServers: {
        names: () => this.names,
        subscribe: (listener) => {
          this.#listener = listener;
          return () => undefined;
        },
      },
      settings: { ...DEFAULT_CERTIFICATE_SETTINGS, overlapMs },
      events: {
        event: (object: KubernetesObject, type, reason) =>
          void this.events.push(`${type} ${reason} ${object.metadata.name}`),
      },
      log,
      registry: this.registry,
    });
    this.#ended = Promise.all([this.#caches, this.controller].map((runnable) => runnable.start(this.#stop.signal)));
  }

  set(...names: readonly string[]): void {
    this.names = names;
    this.#listener();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }
}

describe('CertificateController', () => {
  it('issues certificates, has a bundle while it runs, replaces deleted Secrets, and serves new PolicyServers', async () => {
    await using scene = await SecretsScene.open();
    const running = new Running(scene, 'own');
    const { controller } = running;
    const bundles: (string | undefined)[] = [];
    controller.subscribe(() => bundles.push(controller.bundle()));
    assert.deepEqual([controller.isKnown, controller.bundle()], [false, undefined]);
    await controller.ready;
    assert.ok(controller.isKnown);
    const bundle = controller.bundle();
    assert.equal(bundle, (await scene.texts(CONTROLLER_WEBHOOK_SECRET))['ca.crt']);
    assert.deepEqual(running.events, [`Normal AuthorityCreated ${AUTHORITY_SECRET}`]);

    running.set('default');
    await until(async () => (await scene.get('policy-server-default-control')) !== undefined);
    await scene.delete(CONTROLLER_WEBHOOK_SECRET);
    await until(async () => (await scene.get(CONTROLLER_WEBHOOK_SECRET)) !== undefined);
    await scene.delete(AUTHORITY_SECRET);
    await until(async () => (await scene.texts(AUTHORITY_SECRET))['ca.crt'] === bundle);

    const metrics = await running.registry.metrics();
    assert.match(metrics, /portcullis_certificate_expiry_timestamp_seconds\{secret="portcullis-ca"\} \d+/);
    assert.match(metrics, /portcullis_certificate_rotation_phase\{phase="Stable"\} 1/);
    assert.match(metrics, /portcullis_certificate_problems 0/);
    await running[Symbol.asyncDispose]();
    assert.deepEqual(bundles, [bundle, undefined]);
    assert.equal(controller.isKnown, false);
    assert.doesNotMatch(await running.registry.metrics(), /portcullis-ca/);
  });

  it('rotates the CA only after webhook configurations have the next one', async () => {
    await using scene = await SecretsScene.open();
    await using running = new Running(scene, 'own', 1);
    const { controller } = running;
    await controller.ready;
    const configuration = (pem: string): KubernetesObject => ({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'one', labels: MANAGED_BY },
      webhooks: [
        {
          name: 'one.portcullis.dev',
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          clientConfig: { url: 'https://127.0.0.1:1/x', caBundle: Buffer.from(pem).toString('base64') },
        },
      ],
    });
    const old = controller.bundle() ?? '';
    await scene.cluster.create(VALIDATING_WEBHOOKS, configuration(old));
    await scene.put(AUTHORITY_SECRET, {}, { annotations: { 'portcullis.dev/rotate': '1' } });
    await until(() => parseCertificates(controller.bundle() ?? '').length === 2);
    const phase = async (): Promise<string | undefined> =>
      (await scene.get(AUTHORITY_SECRET))?.metadata.annotations?.['portcullis.dev/rotation-phase'];
    assert.equal(await phase(), 'Introducing');
    // Further passes do not continue the rotation.
    running.set('default');
    await until(async () => (await scene.get('policy-server-default-control')) !== undefined);
    assert.equal(await phase(), 'Introducing');
    const { webhooks } = configuration(controller.bundle() ?? '');
    await scene.cluster.patch(
      VALIDATING_WEBHOOKS,
      { name: 'one' },
      { type: 'merge', body: { webhooks } as JsonObject },
    );
    await until(async () => (await phase()) === 'Stable');
    await until(() => parseCertificates(controller.bundle() ?? '').length === 1);
    assert.notEqual(controller.bundle(), old);
    assert.deepEqual(running.events.slice(1), [
      `Normal RotationStarted ${AUTHORITY_SECRET}`,
      `Normal AuthorityChanged ${AUTHORITY_SECRET}`,
      `Normal RotationCompleted ${AUTHORITY_SECRET}`,
    ]);
  });

  it('inspects certificates of another issuer, trusts the CAs in their Secrets, and reports problems', async () => {
    await using scene = await SecretsScene.open();
    await using running = new Running(scene, 'external');
    const { controller } = running;
    let changes = 0;
    controller.subscribe(() => (changes += 1));
    await controller.ready;
    assert.deepEqual([controller.isKnown, controller.bundle(), changes], [true, undefined, 1]);
    const problems = (): readonly string[] => controller.problems.map(({ secret, reason }) => `${secret} ${reason}`);
    assert.deepEqual(problems(), [
      'portcullis-controller-webhook CertificateMissing',
      'portcullis-controller-control CertificateMissing',
    ]);
    assert.match(
      controller.problems[0]?.message ?? '',
      /expected a certificate for portcullis-controller\.portcullis\.svc/,
    );

    const validity = { notBefore: new Date(Date.now() - HOUR), notAfter: new Date(Date.now() + HOUR) };
    const authorities = [
      await createAuthority({ commonName: 'one', ...validity }),
      await createAuthority({ commonName: 'two', ...validity }),
    ];
    for (const [index, { secret, dnsNames, usages }] of wantedCertificates(scene.namespace, []).entries()) {
      const authority = authorities[index] ?? assert.fail();
      const request = { commonName: 'x', usages, dnsNames: dnsNames.slice(0, 1), ...validity };
      const { cert, key } = await issueCertificate(authority, request);
      await scene.put(secret, { 'tls.crt': cert, 'tls.key': key, 'ca.crt': authority.cert });
    }
    await until(() => controller.problems.length === 0);
    const both = bundleOf(parseCertificates(authorities.map(({ cert }) => cert).join('')));
    assert.equal(controller.bundle(), both);

    await scene.put(CONTROLLER_WEBHOOK_SECRET, { 'ca.crt': authorities[1]?.cert ?? '' });
    await until(() => problems().join() === 'portcullis-controller-webhook CertificateInvalid');
    assert.match(controller.problems[0]?.message ?? '', /ca\.crt does not contain the CA that issued the certificate/);
    const [one] = authorities;
    const wrong = await issueCertificate(one ?? assert.fail(), {
      commonName: 'x',
      usages: ['serverAuth'],
      dnsNames: ['other.svc'],
      ...validity,
    });
    await scene.put(CONTROLLER_WEBHOOK_SECRET, { 'tls.crt': wrong.cert, 'tls.key': wrong.key });
    await until(() => /is not for portcullis-controller\.portcullis\.svc/.test(controller.problems[0]?.message ?? ''));
    // Processes that still serve with its content stay trusted.
    await scene.delete(CONTROLLER_WEBHOOK_SECRET);
    await until(() => problems().join() === 'portcullis-controller-webhook CertificateMissing');
    assert.equal(controller.bundle(), both);
    assert.equal(await scene.get(AUTHORITY_SECRET), undefined);
    assert.ok(running.events.includes(`Warning CertificateInvalid ${CONTROLLER_WEBHOOK_SECRET}`));
  });

  it('reports a controller without its name in the certificate, once a PolicyServer has one', async () => {
    await using scene = await SecretsScene.open();
    const validity = { notBefore: new Date(Date.now() - HOUR), notAfter: new Date(Date.now() + HOUR) };
    const authority = await createAuthority({ commonName: 'one', ...validity });
    const put = async (names: number): Promise<void> => {
      for (const { secret, dnsNames, usages, policyServer } of wantedCertificates(scene.namespace, ['default'])) {
        const all = policyServer === undefined ? dnsNames.slice(0, 1) : dnsNames.slice(0, names);
        const request = { commonName: 'x', usages, dnsNames: all, ...validity };
        const { cert, key } = await issueCertificate(authority, request);
        await scene.put(secret, { 'tls.crt': cert, 'tls.key': key, 'ca.crt': authority.cert });
      }
    };
    await put(1);
    await using running = new Running(scene, 'external');
    running.set('default');
    const { controller } = running;
    await controller.ready;
    await until(() => controller.problems.length === 0);
    await put(2);
    await until(() => controller.problems.length === 1);
    const [problem] = controller.problems;
    assert.deepEqual([problem?.secret, problem?.reason], ['portcullis-controller-control', 'CertificateInvalid']);
    assert.match(problem?.message ?? '', /is not for controller\.control\.portcullis\.dev/);
  });
});
