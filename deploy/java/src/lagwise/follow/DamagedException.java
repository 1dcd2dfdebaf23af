package lagwise.follow;

/** Bytes that somebody else wrote and that cannot be read. It never leaves this package. */
final class DamagedException extends Exception {
    private static final long serialVersionUID = 1L;

    DamagedException(String problem) {
        super(problem);
    }
}
