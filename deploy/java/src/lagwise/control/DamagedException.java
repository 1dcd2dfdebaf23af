package lagwise.control;

/** Bytes that somebody else wrote and that cannot be read. No plug-in lets it out to its caller. */
public final class DamagedException extends Exception {
    private static final long serialVersionUID = 1L;

    public DamagedException(String problem) {
        super(problem);
    }
}
