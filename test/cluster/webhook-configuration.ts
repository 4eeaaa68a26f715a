import type { KubernetesObject } from './cluster.ts';

/** A rule of a webhook, with the fields of `RuleWithOperations`. */
export interface WebhookRule {
  readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT' | '*')[];
  /** Default: the core group. */
  readonly apiGroups?: readonly string[];
  /** Default: all. */
  readonly apiVersions?: readonly string[];
  /** Plurals; subresources such as `pods/exec`. */
  readonly resources: readonly string[];
  /** Default: `*`. */
  readonly scope?: 'Cluster' | 'Namespaced' | '*';
}

/** Equality-based or set-based selector of labels. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

/** The options of a webhook configuration with one webhook. */
export interface WebhookOptions {
  /** The name of the configuration. The name of its webhook is `<name>.portcullis.test`. */
  readonly name: string;
  readonly kind: 'validating' | 'mutating';
  /** The URL of the webhook: `https://127.0.0.1:PORT/validate/ID`. */
  readonly url: string;
  /** The CAs that the certificate of the webhook is verified with. PEM. */
  readonly caBundle: string;
  readonly rules: readonly WebhookRule[];
  /** Default: `Fail`. */
  readonly failurePolicy?: 'Fail' | 'Ignore';
  /** 1 to 30. Default: 10. */
  readonly timeoutSeconds?: number;
  /** Default: `Equivalent`. */
  readonly matchPolicy?: 'Exact' | 'Equivalent';
  /** Labels that the namespace of the object must have. Different labels separate tests. Default: all namespaces. */
  readonly namespaceSelector?: LabelSelector;
  /** Labels that the object must have. Default: all objects. */
  readonly objectSelector?: LabelSelector;
  /** CEL conditions. Default: none. */
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  /** For mutating webhooks only. Default: `Never`. */
  readonly reinvocationPolicy?: 'Never' | 'IfNeeded';
}

const resources = {
  validating: { kind: 'ValidatingWebhookConfiguration', plural: 'validatingwebhookconfigurations' },
  mutating: { kind: 'MutatingWebhookConfiguration', plural: 'mutatingwebhookconfigurations' },
} as const;

/** The API path of webhook configurations of this kind. */
export function webhookConfigurationPath(kind: WebhookOptions['kind']): string {
  return `/apis/admissionregistration.k8s.io/v1/${resources[kind].plural}`;
}

/** The object to create at {@link webhookConfigurationPath}, or to apply with kubectl. */
export function webhookConfiguration(options: WebhookOptions): KubernetesObject {
  const { name, kind, url, caBundle, rules, reinvocationPolicy, ...rest } = options;
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: resources[kind].kind,
    metadata: { name },
    webhooks: [
      {
        name: `${name}.portcullis.test`,
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Fail',
        ...rest,
        ...(kind === 'mutating' && reinvocationPolicy !== undefined ? { reinvocationPolicy } : {}),
        clientConfig: { url, caBundle: Buffer.from(caBundle).toString('base64') },
        rules: rules.map((rule) => ({ apiGroups: [''], apiVersions: ['*'], scope: '*', ...rule })),
      },
    ],
  };
}
