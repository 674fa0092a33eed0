"""Operations on many notifications at once in the embedded store."""
