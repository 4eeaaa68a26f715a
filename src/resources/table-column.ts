/** A column of `kubectl get` (`metav1.TableColumnDefinition`). */
export interface TableColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly format?: string;
  readonly description?: string;
  /** 0 is always shown, others only with `-o wide`. */
  readonly priority?: number;
}

/** A column of a CustomResourceDefinition (`additionalPrinterColumns`). */
export interface CustomColumn extends TableColumn {
  readonly jsonPath: string;
}
