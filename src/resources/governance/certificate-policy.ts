import { choice, entries, flag, integer, list, object, optional, text } from '../schema-builder.ts';
import type { Infer } from '../schema-builder.ts';
import { UNSEEN } from '../kind-declarations/common-schemas.ts';
import { AGE_COLUMN, column, ownKind } from '../kind-declarations/own-kind.ts';
import type { KindDeclaration, ObjectOfKind } from '../kind-declarations/own-kind.ts';
import { GOVERNANCE_GROUP } from './governance-names.ts';
import {
  COMMON_STATUS,
  GOVERNANCE_CATEGORIES,
  NAMESPACE_SELECTOR_FIELDS,
  REMEDIATION_ACTIONS,
  SEVERITY,
  TEMPLATE_HISTORY,
  TEMPLATE_KIND_LABELS,
} from './governance-schemas.ts';

const duration = (description: string) =>
  optional(text(description, { pattern: '^(?:[0-9]+(?:.[0-9])?(?:h|m|s|ms|us|ns))+$' }));

const names = (description: string) => optional(text(description, { minLength: 1 }));

const CERTIFICATE = object('One certificate.', {
  secretName: optional(text('The Secret.')),
  expiration: optional(text('When it expires.')),
  expiry: optional(integer('Time until then, in nanoseconds; negative when it has expired.', { format: 'int64' })),
  ca: optional(flag('Whether it belongs to a certificate authority.')),
  duration: optional(integer('Time from `notBefore` to `notAfter`, in nanoseconds.', { format: 'int64' })),
  sans: optional(list('Its subject alternative names.', text('A name.'))),
});

export type NonCompliantCertificate = Infer<typeof CERTIFICATE>;

const NAMESPACE_CERTIFICATES = object('One namespace.', {
  nonCompliantCertificates: optional(integer('Number of certificates that are not compliant.')),
  nonCompliantCertificatesList: optional(entries('The certificates, by name.', CERTIFICATE)),
  message: optional(text('The result, for users.')),
});

export type NamespaceCertificates = Infer<typeof NAMESPACE_CERTIFICATES>;

const certificatePolicy = {
  group: GOVERNANCE_GROUP,
  version: 'v1',
  kind: 'CertificatePolicy',
  plural: 'certificatepolicies',
  shortNames: [],
  categories: GOVERNANCE_CATEGORIES,
  labels: TEMPLATE_KIND_LABELS,
  scope: 'Namespaced',
  description:
    'Requirements on certificates in Secrets: how long they are valid, and for which names. Usually a template of a Policy. A kind of Open Cluster Management.',
  spec: object('The certificates, and their requirements.', {
    remediationAction: optional(
      choice('Certificates are only reported: `enforce` means the same.', REMEDIATION_ACTIONS),
    ),
    severity: SEVERITY,
    namespaceSelector: optional(
      object(
        'Namespaces of the Secrets. Selects nothing without `include`, `matchLabels` or `matchExpressions`.',
        NAMESPACE_SELECTOR_FIELDS,
      ),
    ),
    labelSelector: optional(entries('Labels that Secrets must have.', text('The value.', { minLength: 1 }))),
    minimumDuration: duration('The least time until a certificate expires, as in `300h`. Default: `672h`.'),
    minimumCADuration: duration('The same for certificates of authorities. Default: `minimumDuration`.'),
    maximumDuration: duration('The longest time for which a certificate is valid.'),
    maximumCADuration: duration('The same for certificates of authorities. Default: `maximumDuration`.'),
    allowedSANPattern: names('A regular expression (RE2) that all subject alternative names must match.'),
    disallowedSANPattern: names('A regular expression (RE2) that no subject alternative name may match.'),
  }),
  status: object(
    'The result of the last evaluation. Written by the controller.',
    {
      compliant: optional(
        choice('The compliance of all certificates together.', ['Compliant', 'NonCompliant', 'UnknownCompliancy']),
      ),
      compliancyDetails: optional(entries('The results by namespace.', NAMESPACE_CERTIFICATES)),
      history: optional(TEMPLATE_HISTORY),
      ...COMMON_STATUS,
    },
    { default: UNSEEN },
  ),
  columns: [
    column('Compliance state', '.status.compliant'),
    AGE_COLUMN,
    column('Severity', '.spec.severity', { isWide: true }),
    column('Message', '.status.history[0].message', { isWide: true }),
  ],
  example: {
    metadata: { name: 'ingress-certificates', namespace: 'local-cluster' },
    spec: {
      remediationAction: 'inform',
      severity: 'high',
      namespaceSelector: { include: ['ingress-*'], exclude: ['ingress-test'] },
      minimumDuration: '300h',
      disallowedSANPattern: String.raw`[\*]`,
    },
  },
} as const satisfies KindDeclaration;

export type CertificatePolicy = ObjectOfKind<typeof certificatePolicy>;
export const CERTIFICATE_POLICIES = ownKind(certificatePolicy);
