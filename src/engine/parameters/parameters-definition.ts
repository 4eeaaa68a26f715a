/** An object whose content are the parameters. */
export interface ParametersResource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  /** Default: the namespace of the request. */
  readonly namespace?: string;
}

/** Annotations and labels of the namespace of the request that are the parameters. */
export interface NamespaceKeys {
  readonly annotations: readonly string[];
  readonly labels: readonly string[];
}

export type ParametersSource = { readonly resource: ParametersResource } | { readonly namespace: NamespaceKeys };

/** How a policy gets settings from data of a namespace: plain data, structured-cloneable. */
export interface ParametersDefinition {
  readonly from: ParametersSource;
  /** The answer to requests without parameters. */
  readonly notFound: 'Deny' | 'Allow' | 'UseDefaults';
  /** The answer to requests with invalid parameters. */
  readonly onInvalid: 'Deny' | 'KeepLast';
  /** Whether a new revision fails when it would refuse parameters that exist, or is rolled out with a warning. */
  readonly onRollout: 'Fail' | 'Warn';
  /** Keys of the settings that the expression may set. */
  readonly overridable: readonly string[];
  readonly settingsExpression: string;
}
