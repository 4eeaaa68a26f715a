// Checks whether API servers can call our webhooks and trust their certificates.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isJsonObject, type JsonObject, type KubernetesObject, textOf } from '../../resources/index.ts';
import { configurationName, isOurConfiguration, webhooksOf } from '../our-configurations.ts';
import { DEPLOYMENTS } from '../kinds.ts';
import { policyServerObjectName } from '../../lifecycle/access-rules/index.ts';
import { certificateMode } from './check-installation.ts';
import { controllerOf, hasAvailablePods } from './controller-arguments.ts';
import { foreignReasonOf } from './check-policies.ts';
import { type Finding, finding } from './finding.ts';
import { isUnread, type Snapshot } from './snapshot.ts';

/** Share of its lifetime before the end of which a certificate should have been renewed. */
const RENEWED_BEFORE = 1 / 6;
const CONTROLLER_SECRETS = ['portcullis-controller-webhook', 'portcullis-controller-control'];
const AUTHORITY = 'portcullis-ca';

export function checkWebhooks(snapshot: Snapshot): readonly Finding[] {
  const { configurations, namespace } = snapshot;
  const ours = configurations.filter((one) => isOurConfiguration(one, namespace));
  if (ours.length > 0 && controllerOf(snapshot) === undefined && !isUnread(snapshot, DEPLOYMENTS)) {
    const names = ours.map(configurationName).join(', ');
    return [
      finding(
        'WebhooksLeftBehind',
        names,
        'API servers still call policy servers that no controller manages',
        'Run `portcullis install`, or remove them with `portcullis uninstall`.',
      ),
    ];
  }
  return ours.flatMap((configuration) => checkConfiguration(snapshot, configuration));
}

function checkConfiguration(snapshot: Snapshot, configuration: KubernetesObject): readonly Finding[] {
  const where = configurationName(configuration);
  const messages = new Map<string, Finding>();
  for (const webhook of webhooksOf(configuration)) {
    const client = isJsonObject(webhook['clientConfig']) ? webhook['clientConfig'] : {};
    const service = isJsonObject(client['service']) ? client['service'] : undefined;
    if (service !== undefined) {
      const found = checkService(snapshot, where, service) ?? checkBundle(snapshot, where, service, client);
      if (found !== undefined) {
        messages.set(found.message, found);
      }
    }
  }
  return [...messages.values()];
}

function checkService({ services, unread }: Snapshot, where: string, service: JsonObject): Finding | undefined {
  const [name, namespace] = [textOf(service['name']), textOf(service['namespace'])];
  const isThere = services.some(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
  return isThere || unread.some(({ what }) => what === 'services')
    ? undefined
    : finding(
        'WebhookServiceMissing',
        where,
        `it names service/${name} -n ${namespace}, which does not exist: its failurePolicy decides about matching requests`,
        'A running controller creates it again. If none runs, run `portcullis install` or `portcullis uninstall`.',
      );
}

/** Verifies, as API servers do, the certificate of the Service by the CA bundle. */
function checkBundle(
  { secrets }: Snapshot,
  where: string,
  service: JsonObject,
  client: JsonObject,
): Finding | undefined {
  const secret = secrets.find(({ metadata }) => metadata.name === `${textOf(service['name'])}-webhook`);
  const [leaf] = secret === undefined ? [] : certificatesOf(dataOf(secret, 'tls.crt'));
  if (leaf === undefined) {
    return undefined;
  }
  const bundle = certificatesOf(Buffer.from(textOf(client['caBundle']), 'base64').toString());
  return bundle.some((authority) => isIssuedBy(leaf, authority))
    ? undefined
    : finding(
        'WebhookCaMismatch',
        where,
        `its caBundle has no CA of the certificate in secret/${secret?.metadata.name}: API servers do not trust it`,
        'The controller corrects it within seconds. If it does not, look at its log.',
      );
}

export function checkCertificates(snapshot: Snapshot): readonly Finding[] {
  const controller = controllerOf(snapshot);
  if (controller === undefined || snapshot.unread.some(({ what }) => what === 'secrets')) {
    return [];
  }
  const isOwn = certificateMode(controller) === 'own';
  const names = new Set([
    ...(isOwn ? [AUTHORITY] : []),
    ...CONTROLLER_SECRETS,
    ...snapshot.policyServers
      .filter((server) => foreignReasonOf(snapshot, server) === undefined)
      .flatMap(({ metadata }) => {
        const name = policyServerObjectName(metadata.name ?? '');
        return [`${name}-webhook`, `${name}-control`];
      }),
    // Also those of deleted PolicyServers, whose pods may still answer. Secrets that others manage are never deleted.
    ...(isOwn ? snapshot.secrets : [])
      .map(({ metadata }) => metadata.name ?? '')
      .filter((name) => /^policy-server-.*-(webhook|control)$/.test(name)),
  ]);
  return [...names].flatMap((name) => checkSecret(snapshot, name, isOwn));
}

function checkSecret(snapshot: Snapshot, name: string, isOwn: boolean): readonly Finding[] {
  const { secrets, namespace, now } = snapshot;
  const where = `secret/${name} -n ${namespace}`;
  const action = isOwn
    ? 'The controller creates it again within seconds. If it does not, check its log.'
    : 'Look at what keeps it: cert-manager’s Certificate of that name.';
  const secret = secrets.find(({ metadata }) => metadata.name === name);
  const controller = controllerOf(snapshot);
  if (secret === undefined) {
    // Without a running controller nobody creates it: that is the finding.
    const isExplained = isOwn && controller !== undefined && !hasAvailablePods(controller);
    return isExplained ? [] : [finding('CertificateMissing', where, 'it does not exist', action)];
  }
  const [certificate] = certificatesOf(dataOf(secret, 'tls.crt'));
  if (certificate === undefined) {
    // The Secret of the CA has other keys.
    return name === AUTHORITY ? [] : [finding('CertificateUnreadable', where, 'tls.crt is not a certificate', action)];
  }
  return [
    ...(name === AUTHORITY ? [] : checkKey(secret, certificate, where, action)),
    ...checkDates(certificate, now, where, action),
    ...checkIssuer(secret, certificate, where, action),
  ];
}

/** The key must be that of the certificate. A new controller process waits until it is. */
function checkKey(
  secret: KubernetesObject,
  certificate: X509Certificate,
  where: string,
  action: string,
): readonly Finding[] {
  return isKeyOf(dataOf(secret, 'tls.key'), certificate)
    ? []
    : [finding('CertificateUnreadable', where, 'tls.key is not the key of the certificate in tls.crt', action)];
}

function isKeyOf(pem: string, certificate: X509Certificate): boolean {
  try {
    return certificate.checkPrivateKey(createPrivateKey(pem));
  } catch {
    return false;
  }
}

function checkDates(certificate: X509Certificate, now: number, where: string, action: string): readonly Finding[] {
  const [from, to] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()];
  const until = certificate.validToDate.toISOString();
  if (now > to) {
    return [finding('CertificateExpired', where, `it expired at ${until}`, action)];
  }
  if (now < from) {
    const message = `it is valid from ${certificate.validFromDate.toISOString()} on: the clocks differ`;
    return [finding('CertificateNotYetValid', where, message, 'Set the clocks of the nodes.')];
  }
  return to - now < (to - from) * RENEWED_BEFORE
    ? [finding('CertificateExpiring', where, `it expires at ${until}, and should have been renewed`, action)]
    : [];
}

function checkIssuer(
  secret: KubernetesObject,
  certificate: X509Certificate,
  where: string,
  action: string,
): readonly Finding[] {
  const authorities = certificatesOf(dataOf(secret, 'ca.crt'));
  return authorities.length === 0 || authorities.some((authority) => isIssuedBy(certificate, authority))
    ? []
    : [finding('CertificateNotTrusted', where, 'tls.crt was issued by none of the CAs in ca.crt', action)];
}

function isIssuedBy(certificate: X509Certificate, authority: X509Certificate): boolean {
  return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
}

function dataOf(secret: KubernetesObject, key: string): string {
  const { data } = secret;
  return isJsonObject(data) && Object.hasOwn(data, key) ? Buffer.from(textOf(data[key]), 'base64').toString() : '';
}

/** The valid certificates of a PEM text. */
function certificatesOf(pem: string): readonly X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.flatMap((block) => {
    try {
      return [new X509Certificate(block)];
    } catch {
      return [];
    }
  });
}
