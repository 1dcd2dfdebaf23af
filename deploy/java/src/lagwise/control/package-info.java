/**
 * The control topic as a client in Java reads it: its records, strictly decoded, and a consumer that reads all of them.
 *
 * <p>Both jars carry it: that for consumers ({@code lagwise.follow}) and that for brokers ({@code lagwise.broker}). It is
 * public for these two alone and may change with each version.
 */
package lagwise.control;
