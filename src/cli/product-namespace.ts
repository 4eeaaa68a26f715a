/** Where the product keeps its own objects (revisions, replicas, leases), unless it was installed elsewhere. */
export const PRODUCT_NAMESPACE = 'portcullis';
